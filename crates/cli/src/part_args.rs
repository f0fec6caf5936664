//! `--part` and `--start-at`: one plan, shared out among several processes or machines.

use std::num::NonZeroU32;

use anyhow::{Result, bail};
use brunt_io::clock;
use brunt_load::{Part, Plan};
use clap::Args;

/// Options of a part.
#[derive(Debug, Default, Args)]
pub(crate) struct PartArguments {
    /// Make part I of N of this load, as in 2/4, here: with its share of the workers and of what
    /// they share. Each part is given the same options, in a process of its own, on any machine;
    /// brunt merge makes one run of what they store
    #[arg(long, value_name = "I/N", value_parser = numbered, help_heading = "Load",
          requires_all = ["threads", "url"], conflicts_with = "requests")]
    pub(crate) part: Option<Numbered>,
    /// When the load begins, by the clocks of the machines: seconds since 1970-01-01 UTC, as in
    /// $(date -d '20 seconds' +%s). Connections are opened before that
    #[arg(long, value_name = "SECONDS", value_parser = unix_ns, requires = "part",
          help_heading = "Load")]
    pub(crate) start_at: Option<u64>,
}

/// One of several parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbered {
    /// From 1.
    number: NonZeroU32,
    of: NonZeroU32,
}

/// A part of a plan, and when its load begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakenPart {
    pub(crate) part: Part,
    /// On the run's clock, nanoseconds.
    pub(crate) start_ns: u64,
}

impl PartArguments {
    /// The part of `plan` that is made here; absent: all of it.
    pub(crate) fn of(&self, plan: &Plan) -> Result<Option<TakenPart>> {
        let Some(Numbered { number, of }) = self.part else {
            return Ok(None);
        };
        let Some(part) = Part::nth(number.get() - 1, of, plan.workers) else {
            bail!("each part needs a worker of its own; use -t {of} or more, the same for each");
        };
        let Some(unix_ns) = self.start_at else {
            bail!(
                "the parts are one load when they begin at once: add --start-at, the same for each"
            );
        };
        let start_ns = unix_ns.saturating_sub(clock::origin_unix_ns());
        Ok(Some(TakenPart { part, start_ns }))
    }

    /// What is made of `plan` here.
    pub(crate) fn own(&self, plan: &Plan) -> Result<Plan> {
        let taken = self.of(plan)?;
        let own = taken.and_then(|taken| plan.part(taken.part.workers()));
        Ok(own.unwrap_or_else(|| plan.clone()))
    }
}

fn numbered(typed: &str) -> Result<Numbered, String> {
    let numbers = typed.split_once('/');
    let numbers = numbers.and_then(|(number, of)| number.parse().ok().zip(of.parse().ok()));
    match numbers {
        Some((number, of)) if number <= of => Ok(Numbered { number, of }),
        _ => Err(format!(
            "`{typed}` is not a part; write it as 1/4, 2/4 and so on to 4/4"
        )),
    }
}

/// An instant of the wall clock, nanoseconds.
fn unix_ns(typed: &str) -> Result<u64, String> {
    let (whole, fraction) = typed.split_once('.').unwrap_or((typed, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds: Option<u64> = whole.parse().ok().filter(|_| are_digits(whole));
    let ns = format!("{fraction:0<9}");
    let ns: Option<u64> = ns
        .parse()
        .ok()
        .filter(|_| ns.len() == 9 && are_digits(fraction));
    let instant = seconds.zip(ns).and_then(|(seconds, ns)| {
        let seconds_ns = seconds.checked_mul(1_000_000_000)?;
        seconds_ns.checked_add(ns)
    });
    instant.ok_or_else(|| {
        format!("`{typed}` is not an instant; give seconds since 1970-01-01 UTC, as date +%s does")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_numbered_from_one() {
        let typed = |typed| numbered(typed).map(|it| (it.number.get(), it.of.get()));
        assert_eq!(typed("1/1"), Ok((1, 1)));
        assert_eq!(typed("3/4"), Ok((3, 4)));
        for wrong in [
            "", "1", "/", "0/4", "5/4", "1/0", "1/4/2", "-1/4", "a/b", "1 / 4",
        ] {
            assert!(typed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn instants_are_seconds() {
        assert_eq!(unix_ns("0"), Ok(0));
        assert_eq!(unix_ns("1764160200"), Ok(1_764_160_200_000_000_000));
        assert_eq!(unix_ns("1764160200.5"), Ok(1_764_160_200_500_000_000));
        assert_eq!(unix_ns("1.000000001"), Ok(1_000_000_001));
        for wrong in [
            "",
            ".",
            "-1",
            "+1",
            "now",
            "1.0000000001",
            "1e9",
            "99999999999999",
            "1.-5",
        ] {
            assert!(unix_ns(wrong).is_err(), "{wrong}");
        }
    }
}
