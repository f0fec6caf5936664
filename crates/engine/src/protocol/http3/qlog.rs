//! What QUIC does on one connection of a run, as qlog: the datagrams of the first one, for tools
//! that show such traces (draft-ietf-quic-qlog-main-schema and -quic-events, version 0.3).

use std::fmt::{Display, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use brunt_io::transport::ReceivedDatagrams;
use brunt_proto::quic::PathFigures;

/// Most bytes of a log.
const BYTES_MAX: usize = 64 << 20;
/// What begins each record of a JSON text sequence (RFC 7464).
const RECORD: char = '\u{1e}';
/// The first record. Times count from the beginning of the connection.
const HEADER: &str = "{\"qlog_format\":\"JSON-SEQ\",\"qlog_version\":\"0.3\",\"title\":\"brunt\",\
                      \"trace\":{\"vantage_point\":{\"name\":\"brunt\",\"type\":\"client\"},\
                      \"common_fields\":{\"time_format\":\"relative\",\"reference_time\":0}}}";

/// The log of the first connection of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuicLog {
    text: Arc<Mutex<String>>,
}

impl QuicLog {
    /// What was logged so far; absent where no connection began.
    pub(crate) fn text(&self) -> Option<String> {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        (!text.is_empty()).then(|| text.clone())
    }

    /// The log, for a connection that begins at `now_ns`; absent for all but the first.
    pub(crate) fn begin(&self, now_ns: u64) -> Option<ConnectionLog> {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if !text.is_empty() {
            return None;
        }
        // Nothing fails in memory.
        let _ = writeln!(text, "{RECORD}{HEADER}");
        drop(text);
        let log = ConnectionLog {
            log: self.clone(),
            begun_ns: now_ns,
            figures: PathFigures::default(),
        };
        log.state("attempted", now_ns);
        Some(log)
    }
}

/// The log of a connection.
#[derive(Debug)]
pub(crate) struct ConnectionLog {
    log: QuicLog,
    begun_ns: u64,
    /// What was known of its path.
    figures: PathFigures,
}

impl ConnectionLog {
    /// Datagrams of this length, but for the last one, were sent: `bytes` in all.
    pub(crate) fn sent(&self, bytes: usize, segment_bytes: usize, now_ns: u64) {
        let full = std::iter::repeat_n(segment_bytes, bytes / segment_bytes);
        let last = Some(bytes % segment_bytes).filter(|&rest| rest > 0);
        self.datagrams("sent", full.chain(last), now_ns);
    }

    /// Datagrams came, after which this is known of the path.
    pub(crate) fn received(
        &mut self,
        received: ReceivedDatagrams<'_>,
        figures: PathFigures,
        now_ns: u64,
    ) {
        let lengths = received.segments().map(<[u8]>::len);
        self.datagrams("received", lengths, now_ns);
        let before = std::mem::replace(&mut self.figures, figures);
        for _ in before.packets_lost..figures.packets_lost {
            self.event("recovery:packet_lost", "{}", now_ns);
        }
        if figures.round_trip_ns != before.round_trip_ns {
            let round_trip = milliseconds(figures.round_trip_ns);
            let data = format_args!("{{\"smoothed_rtt\":{round_trip}}}");
            self.event("recovery:metrics_updated", data, now_ns);
        }
    }

    /// The handshake is complete.
    pub(crate) fn secured(&self, now_ns: u64) {
        self.state("handshake_complete", now_ns);
    }

    /// The connection is over.
    pub(crate) fn closed(&self, owner: &str, now_ns: u64) {
        let data = format_args!("{{\"owner\":\"{owner}\"}}");
        self.event("connectivity:connection_closed", data, now_ns);
    }

    fn state(&self, new: &str, now_ns: u64) {
        let data = format_args!("{{\"new\":\"{new}\"}}");
        self.event("connectivity:connection_state_updated", data, now_ns);
    }

    fn datagrams(&self, what: &str, lengths: impl Iterator<Item = usize>, now_ns: u64) {
        let raw: Vec<String> = lengths
            .map(|length| format!("{{\"length\":{length}}}"))
            .collect();
        let (count, raw) = (raw.len(), raw.join(","));
        let data = format_args!("{{\"count\":{count},\"raw\":[{raw}]}}");
        self.event(format_args!("transport:datagrams_{what}"), data, now_ns);
    }

    fn event(&self, name: impl Display, data: impl Display, now_ns: u64) {
        let mut text = self.log.text.lock().unwrap_or_else(PoisonError::into_inner);
        if text.len() >= BYTES_MAX {
            return;
        }
        let time = milliseconds(now_ns.saturating_sub(self.begun_ns));
        // Nothing fails in memory.
        let _ = writeln!(
            text,
            "{RECORD}{{\"time\":{time},\"name\":\"{name}\",\"data\":{data}}}"
        );
    }
}

/// Nanoseconds as the milliseconds of qlog.
fn milliseconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;

    #[test]
    fn the_first_connection_is_logged_as_a_sequence_of_json() {
        let log = QuicLog::default();
        assert_eq!(log.text(), None);
        let mut connection = log.begin(5_000_000).expect("it is the first");
        assert!(log.begin(6_000_000).is_none());
        connection.sent(2_500, 1_200, 5_000_000);
        let received = ReceivedDatagrams {
            bytes: &[0; 1_300],
            segment_bytes: NonZeroU16::new(1_200).expect("not zero"),
            ..ReceivedDatagrams::NONE
        };
        let figures = PathFigures {
            packets_lost: 1,
            round_trip_ns: 1_250_000,
            ..PathFigures::default()
        };
        connection.received(received, figures, 6_000_001);
        connection.secured(6_000_001);
        connection.closed("local", 7_000_000);
        let text = log.text().expect("a log");
        let records: Vec<serde_json::Value> = text
            .split_terminator('\n')
            .map(|record| {
                let json = record.strip_prefix(RECORD).expect("a record");
                serde_json::from_str(json).expect(json)
            })
            .collect();
        assert_eq!(records[0]["qlog_format"], "JSON-SEQ");
        assert_eq!(records[0]["trace"]["vantage_point"]["type"], "client");
        let names: Vec<&str> = records[1..]
            .iter()
            .map(|record| record["name"].as_str().expect("a name"))
            .collect();
        assert_eq!(
            names,
            [
                "connectivity:connection_state_updated",
                "transport:datagrams_sent",
                "transport:datagrams_received",
                "recovery:packet_lost",
                "recovery:metrics_updated",
                "connectivity:connection_state_updated",
                "connectivity:connection_closed",
            ]
        );
        let lengths = records[2]["data"]["raw"].as_array().expect("lengths");
        let lengths: Vec<_> = lengths.iter().map(|it| it["length"].as_u64()).collect();
        assert_eq!(lengths, [Some(1_200), Some(1_200), Some(100)]);
        assert_eq!(records[3]["time"], 1.000001);
        assert_eq!(records[5]["data"]["smoothed_rtt"], 1.25);
    }
}
