//! A permission that is taken back is gone at once, whatever connections it left behind.

use std::net::Ipv4Addr;

use switchboard_egress::{AddressClass, Allowlist, SendError, UrlRefusal};

use crate::nameserver::{Kind, Nameserver, Record, Reply};
use crate::receiver::{LONG, Receiver, loopback, loopback_egress, post};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

#[tokio::test]
async fn after_a_permission_is_gone_no_open_connection_helps() {
    let nameserver = Nameserver::start(|_, kind, _| match kind {
        Kind::A => Reply::Records(vec![Record::A(Ipv4Addr::LOCALHOST)]),
        Kind::Aaaa => Reply::Records(Vec::new()),
    })
    .await;
    let nameservers = [nameserver.address];
    let (mut receiver, _) = Receiver::answering(OK).await;
    let by_name = format!("http://hook.example:{}/", receiver.address.port());
    let by_address = receiver.url("/");
    let egress = loopback_egress(nameservers.to_vec());
    let clone = egress.clone();
    for url in [&by_name, &by_address, &by_name, &by_address] {
        assert_eq!(clone.send(post(url), LONG, 0).await.unwrap().status(), 200);
    }
    assert_eq!(receiver.connections(), 2, "one for each spelling, both kept open");

    egress.reload(Allowlist::default(), &nameservers);
    let refused = |result: Result<_, SendError>| result.map(drop).unwrap_err();
    assert_eq!(refused(clone.send(post(&by_name), LONG, 0).await), SendError::Refused(UrlRefusal::NotPublic));
    let literal = SendError::Refused(UrlRefusal::Address(AddressClass::Loopback));
    assert_eq!(refused(clone.send(post(&by_address), LONG, 0).await), literal);
    receiver.wait_for_closed(2).await;
    assert_eq!(receiver.connections(), 2);

    egress.reload(loopback(), &nameservers);
    assert_eq!(clone.send(post(&by_name), LONG, 0).await.unwrap().status(), 200);
    assert_eq!(receiver.connections(), 3);
}

#[tokio::test]
async fn nameservers_can_be_changed() {
    let answering = async |address: [u8; 4]| {
        Nameserver::start(move |_, kind, _| match kind {
            Kind::A => Reply::Records(vec![Record::A(Ipv4Addr::from(address))]),
            Kind::Aaaa => Reply::Records(Vec::new()),
        })
        .await
    };
    let (outside, inside) = (answering([93, 184, 215, 14]).await, answering([10, 0, 0, 1]).await);
    let egress = loopback_egress(vec![outside.address]);
    egress.check("http://hook.example/").await.unwrap();
    egress.reload(loopback(), &[inside.address]);
    assert_eq!(egress.check("http://hook.example/").await, Err(UrlRefusal::NotPublic));
    assert_eq!(inside.asked(), 2);
}
