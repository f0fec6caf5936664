//! nuttcp's usage and version.

/// The version whose client brunt stands in for.
pub(super) const VERSION: &str = "6.1.2";

/// What is printed for `-h`, and where something is wrong.
pub(super) const USAGE: &str = "\
Usage: nuttcp or nuttcp -h\tprints this usage info
Usage: nuttcp -V\t\tprints version info
Usage (transmitter): nuttcp [-t] [-options] [ctl_addr/]host
      |(receiver):   nuttcp -r [-options] [ctl_addr/]host
\t-4\tUse IPv4
\t-6\tUse IPv6
\t-l##\tlength of network read|write buf of the server (default 64K)
\t-w##\ttransmitter|receiver window size in KB (or (m|M)B or (g|G)B)
\t-ws##\tserver receive|transmit window size in KB (or (m|M)B or (g|G)B)
\t-wb\tsets both xmit and rcv windows
\t-p##\tport number to send to (default 5001)
\t-P##\tport number for control connection (default 5000)
\t-M##\tMSS for data connection (TCP)
\t-N##\tnumber of streams (starting at port number)
\t-R##\ttransmit rate limit in Kbps (or (m|M)bps or (g|G)bps)
\t-T##\ttransmit timeout in seconds (or (m|M)inutes or (h|H)ours)
\t-i##\treceiver interval reporting in seconds (or (m|M)inutes)
\t-Ixxx\tidentifier for nuttcp output (max of 40 characters)
\t-v\tverbose output
\t-b\tbrief output (default)
\t-D\txmit only: don't buffer TCP writes (sets TCP_NODELAY sockopt)
Format options:
\t-frunningtotal\talso give cumulative stats on interval reports
\t-f-retrans\tdon't give retrans info on brief output (TCP)
\t-fparse\t\tgenerate key=value parsable output
\t-f-rtt\t\tsuppress RTT info
Of brunt:
\t--brunt-report FILE\tstores brunt's record of the run
";
