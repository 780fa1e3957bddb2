//! How the library behaves: see the crate's documentation.

use std::sync::OnceLock;

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) version: u32,
    pub(crate) kernel_bytes: usize,
    pub(crate) holder: Option<String>,
    pub(crate) refuse: Option<(u32, u32)>,
    pub(crate) complete_on_worker: bool,
    pub(crate) timestamp_fails: bool,
    pub(crate) times_now: bool,
    pub(crate) names: u32,
}

pub(crate) fn options() -> &'static Options {
    static OPTIONS: OnceLock<Options> = OnceLock::new();
    OPTIONS.get_or_init(|| {
        let text = std::env::var("MOCK_CUPTI").unwrap_or_default();
        let value = |key: &str| {
            text.split(';').filter_map(|pair| pair.split_once('=')).find(|(k, _)| *k == key).map(|(_, v)| v.to_owned())
        };
        let number = |key: &str| value(key).and_then(|v| v.parse::<u32>().ok());
        Options {
            version: number("version").unwrap_or(130_001),
            kernel_bytes: number("kernel_bytes").unwrap_or(216) as usize,
            holder: value("holder"),
            refuse: value("refuse").and_then(|v| {
                let (kind, result) = v.split_once(':')?;
                Some((kind.parse().ok()?, result.parse().ok()?))
            }),
            complete_on_worker: value("complete").as_deref() == Some("worker"),
            timestamp_fails: value("timestamp").as_deref() == Some("fails"),
            times_now: value("times").as_deref() == Some("now"),
            names: number("names").unwrap_or(0),
        }
    })
}
