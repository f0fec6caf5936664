//! `brunt tcp --send`, `--receive` and `--both`: bandwidth, and the options of its sockets.

use std::num::{NonZeroU32, NonZeroU64};

use anyhow::{Result, bail};
use brunt_load::{SocketOptions, Streams, units};
use clap::{Args, ValueEnum};

use crate::values::whole_u32;

/// Whether an option is on, as typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// Yes
    #[default]
    On,
    /// No
    Off,
}

#[derive(Debug, Args)]
pub(crate) struct StreamArguments {
    /// Measure bandwidth: each connection sends without end. Bytes count that the server's kernel
    /// acknowledged in the window
    #[arg(long, help_heading = "Bandwidth",
          conflicts_with_all = ["messages", "reply", "first", "receive"])]
    pub(crate) send: bool,
    /// Measure bandwidth: the server sends without end, and brunt discards what it receives
    #[arg(long, help_heading = "Bandwidth",
          conflicts_with_all = ["messages", "reply", "first", "both"])]
    pub(crate) receive: bool,
    /// Measure bandwidth in both directions at once on each connection
    #[arg(long, help_heading = "Bandwidth",
          conflicts_with_all = ["messages", "reply", "first", "send"])]
    pub(crate) both: bool,
    /// Most bits per second that are sent, all connections together, as in 1g or 100mbit. The
    /// kernel paces them, each at an equal share
    #[arg(long, value_name = "SPEED", value_parser = units::link_bits_per_s,
          help_heading = "Bandwidth", conflicts_with = "receive")]
    pub(crate) bandwidth: Option<u64>,

    /// Send small writes at once (TCP_NODELAY)
    #[arg(
        long,
        value_name = "SWITCH",
        default_value = "on",
        help_heading = "Sockets"
    )]
    pub(crate) nodelay: Switch,
    /// Bytes of each socket's send buffer, as in 256k [default: the kernel adapts it]
    #[arg(long, value_name = "BYTES", value_parser = whole_u32, help_heading = "Sockets")]
    pub(crate) sndbuf: Option<NonZeroU32>,
    /// Bytes of each socket's receive buffer [default: the kernel adapts it]
    #[arg(long, value_name = "BYTES", value_parser = whole_u32, help_heading = "Sockets")]
    pub(crate) rcvbuf: Option<NonZeroU32>,
    /// Most bytes of payload in a segment (TCP_MAXSEG)
    #[arg(long, value_name = "BYTES", value_parser = whole_u32, help_heading = "Sockets")]
    pub(crate) mss: Option<NonZeroU32>,
    /// Congestion control, as in cubic or bbr [default: that of the machine]
    #[arg(long, value_name = "NAME", help_heading = "Sockets")]
    pub(crate) congestion: Option<String>,
}

impl StreamArguments {
    /// The streams asked for; absent where connections carry messages.
    pub(crate) fn streams(&self) -> Result<Option<Streams>> {
        let streams = Streams {
            sends: self.send || self.both,
            receives: self.receive || self.both,
            paced_bits_per_s: self.bandwidth.and_then(NonZeroU64::new),
            is_arranged: false,
        };
        if !streams.sends && !streams.receives {
            if self.bandwidth.is_some() {
                bail!("--bandwidth is a limit of what is sent: with --send or --both");
            }
            return Ok(None);
        }
        Ok(Some(streams))
    }

    /// Options of the sockets.
    pub(crate) fn sockets(&self) -> SocketOptions {
        SocketOptions {
            is_nodelay: self.nodelay == Switch::On,
            send_buffer_bytes: self.sndbuf,
            receive_buffer_bytes: self.rcvbuf,
            segment_bytes: self.mss,
            congestion: self.congestion.clone(),
            paced_bytes_per_s: None,
            receive_bytes_min: None,
        }
    }
}
