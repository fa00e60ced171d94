//! The resident memory of a process, as the kernel reports it.

use anyhow::Context;

pub(crate) fn resident_kib(pid: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().split(' ').next()).and_then(|number| number.parse().ok());
    number.with_context(|| format!("{path} has no VmRSS"))
}
