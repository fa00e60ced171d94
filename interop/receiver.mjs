// A webhook's receiver as its operator would write it: Node's HTTP server on a free port, which checks every
// request before it counts. What a body says is for an SDK to tell, whose types come in as `parse`.

import { createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { equal, holds, until } from "./runner.mjs";

// What the webhooks of the tests are to show.
export const TOKEN = "a-token";
export const CREDENTIALS = "some-credentials";

const TARGET = "/hook?shelf=b4";
const MEDIA_TYPES = { "0.3": "application/json", "1.0": "application/a2a+json" };

// How old a signature may be, as the receivers' libraries have it.
const TOLERANCE_SECONDS = 300;

/** Takes what one webhook is told. `refuse` is which event, counted from 1, it does not take the first time. */
export class Receiver {
  constructor(address, version, parse, { refuse = 0 } = {}) {
    Object.assign(this, { address, version, parse, refuse });
    this.deliveries = [];
    this.requests = [];
    this.seen = [];
    this.wake = () => {};
  }

  async start() {
    this.secrets = (await this.ask("/api/webhooks/secret")).secrets;
    const server = createServer(async (request, response) => {
      const pieces = [];
      for await (const piece of request) pieces.push(piece);
      const taken = this.take(request, Buffer.concat(pieces));
      response.writeHead(taken ? 200 : 503).end();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    // It goes with the process.
    server.unref();
    this.port = server.address().port;
    this.url = `http://127.0.0.1:${this.port}${TARGET}`;
    return this;
  }

  take({ method, url, headers }, body) {
    const event = headers["webhook-id"];
    const taken = this.seen.includes(event) || this.seen.length + 1 !== this.refuse;
    if (!this.seen.includes(event)) this.seen.push(event);
    this.requests.push({ method, url, headers, body, taken });
    this.wake();
    return taken;
  }

  /** The next request, checked. */
  async next() {
    while (this.requests.length === 0) await new Promise((wake) => (this.wake = wake));
    const { method, url, headers, body, taken } = this.requests.shift();
    equal([method, url], ["POST", TARGET]);
    equal([headers["content-type"], headers["a2a-version"]], [MEDIA_TYPES[this.version], this.version]);
    equal(headers["x-a2a-notification-token"], TOKEN);
    equal(headers.authorization, `Bearer ${CREDENTIALS}`);
    this.verify(headers, body);
    const delivery = { id: headers["webhook-id"], body, event: this.parse(JSON.parse(body)), taken };
    this.deliveries.push(delivery);
    return delivery;
  }

  /** All events that came, up to the last one. That there are no more is what the server says too. */
  async told(taskId, isLast) {
    for (;;) {
      const { taken, event } = await this.next();
      if (taken && isLast(event)) break;
    }
    const taken = this.deliveries.filter((delivery) => delivery.taken);
    equal(new Set(taken.map(({ id }) => id)).size, taken.length);
    const webhook = await until(
      () => this.webhook(taskId),
      ({ state }) => state === "finished",
    );
    equal([webhook.delivered, webhook.dead], [taken.length, 0]);
    this.isQuiet();
    return taken.map(({ event }) => event);
  }

  isQuiet() {
    equal(this.requests.length, 0);
  }

  /** Standard Webhooks, with any of the secrets. */
  verify(headers, body) {
    const sentAt = headers["webhook-timestamp"];
    holds(Math.abs(Date.now() / 1000 - Number(sentAt)) < TOLERANCE_SECONDS, `signed at ${sentAt}`);
    const given = headers["webhook-signature"].split(" ").map((signature) => signature.split(","));
    const valid = this.secrets.some((secret) => {
      const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
      const digest = createHmac("sha256", key).update(`${headers["webhook-id"]}.${sentAt}.`).update(body).digest();
      return given.some(([version, signature]) => {
        const bytes = Buffer.from(signature, "base64");
        return version === "v1" && bytes.length === digest.length && timingSafeEqual(bytes, digest);
      });
    });
    holds(valid, `no secret made the signature ${headers["webhook-signature"]}`);
  }

  async webhook(taskId) {
    const { webhooks } = await this.ask(`/api/webhooks?task=${taskId}`);
    return webhooks.find(({ endpoint }) => endpoint.endsWith(`:${this.port}`));
  }

  async ask(path) {
    const response = await fetch(`${this.address}${path}`);
    holds(response.ok, `${path} answered ${response.status}`);
    return response.json();
  }
}
