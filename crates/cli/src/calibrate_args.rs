//! What was typed of `brunt calibrate`.

use clap::{Args, ValueEnum};

use crate::values::step;

/// The backends to calibrate, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CalibrateBackendName {
    /// Each that the kernel allows
    All,
    /// io_uring or nothing
    Uring,
    /// epoll
    Epoll,
}

/// The form of a certificate, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CertificateFormatName {
    /// Aligned lines for people
    Text,
    /// All figures
    Json,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The certificate is stored in $XDG_STATE_HOME/brunt (else ~/.local/state/brunt), \
        one per machine and version of brunt; runs here refer to it. All steps speak HTTP/1.1 in \
        clear text: the ceilings are not those of TLS or HTTP/2. Nothing else should run \
        meanwhile: where other programs or virtual machines use the CPUs, or repeated steps do \
        not agree, nothing is stored, and what was stored before stays."
)]
pub(crate) struct CalibrateArguments {
    /// Kernel interfaces to measure; the certificate holds no others
    #[arg(long, value_name = "NAME", default_value = "all")]
    pub(crate) backend: CalibrateBackendName,
    /// Length of a step; 1s makes some 30 s in all. Shorter ones leave out what needs more samples
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = step)]
    pub(crate) step: u64,
    /// Form of the certificate
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) format: CertificateFormatName,
    /// Print the certificate only, with a note of all that is not believed
    #[arg(long)]
    pub(crate) no_store: bool,
    /// No progress line
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
