//! Values of httperf's options: numbers, lists of them, periods, and its words for bad ones.

use crate::Ending;
use crate::httperf::number::{real, whole};

/// Exit code of a command line that is wrong.
pub(super) const EXIT_ERROR: u8 = 1;

/// When connections or sessions begin.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Period {
    /// Each begins when the one before is over.
    #[default]
    Sequential,
    /// Each begins so many seconds after the one before.
    Fixed(f64),
    /// Random times between beginnings, uniformly distributed between these two, seconds.
    Uniform(f64, f64),
    /// Random times between beginnings, exponentially distributed with this mean, seconds.
    Exponential(f64),
    /// Stages, one after another: the time between beginnings and the length of the stage, both in
    /// seconds.
    Steps(Vec<(f64, f64)>),
}

pub(super) fn error(text: &str) -> Ending {
    Ending::error(&format!("httperf: {text}"), EXIT_ERROR)
}

pub(super) fn unfit(text: &str) -> Ending {
    Ending::error(&format!("brunt: {text}"), EXIT_ERROR)
}

/// A whole number from 0 on.
pub(super) fn count(typed: &str, what: &str) -> Result<u32, Ending> {
    let number = whole(typed).and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| error(&format!("illegal {what} {typed}")))
}

pub(super) fn seconds(typed: &str, what: &str) -> Result<f64, Ending> {
    let number = real(typed).map(|number| number.max(0.0));
    number.ok_or_else(|| error(&format!("illegal {what} {typed}")))
}

/// The parameters of an option, with commas between them.
pub(super) struct Parameters<'a> {
    pub(super) option: &'static str,
    pub(super) rest: &'a str,
}

impl<'a> Parameters<'a> {
    /// The next one, up to its comma, if `read` can read it.
    pub(super) fn next<T>(
        &mut self,
        what: &str,
        read: impl Fn(&'a str) -> Option<T>,
    ) -> Result<T, Ending> {
        let (word, rest) = self.rest.split_once(',').unwrap_or((self.rest, ""));
        match read(word).filter(|_| !word.is_empty()) {
            Some(value) => {
                self.rest = rest;
                Ok(value)
            }
            None => Err(self.bad(what, self.rest)),
        }
    }

    pub(super) fn bad(&self, what: &str, rest: &str) -> Ending {
        error(&format!(
            "bad {what} in --{} arg (rest: `{rest}')",
            self.option
        ))
    }

    pub(super) fn count(&mut self, what: &str) -> Result<u32, Ending> {
        let read = |word| whole(word).and_then(|number| u32::try_from(number).ok());
        self.next(what, read)
    }

    pub(super) fn seconds(&mut self, what: &str) -> Result<f64, Ending> {
        self.next(what, |word| real(word).map(|number| number.max(0.0)))
    }
}

pub(super) fn client(typed: &str) -> Result<(u32, u32), Ending> {
    let digits = |text: &str| {
        let end = text.find(|character: char| !character.is_ascii_digit());
        let (number, rest) = text.split_at(end.unwrap_or(text.len()));
        (number.parse::<u32>().ok(), rest.to_owned())
    };
    let (Some(client), rest) = digits(typed) else {
        return Err(error(&format!("bad client id (rest: `{typed}')")));
    };
    let Some(clients) = rest.strip_prefix('/') else {
        let text = format!("client id not followed by `/' (rest: `{rest}')");
        return Err(error(&text));
    };
    match digits(clients) {
        (Some(all), _) if client < all => Ok((client, all)),
        _ => Err(error(&format!("bad number of clients (rest: `{clients}')"))),
    }
}

pub(super) fn fixed(period_s: f64) -> Period {
    if period_s > 0.0 {
        Period::Fixed(period_s)
    } else {
        Period::Sequential
    }
}

pub(super) fn period(typed: &str) -> Result<Period, Ending> {
    let mean = |typed: &str| {
        let seconds = real(typed).filter(|&seconds| seconds >= 0.0);
        seconds.ok_or_else(|| error(&format!("illegal mean interarrival time {typed}")))
    };
    let mut characters = typed.chars();
    match characters.next() {
        Some('d') => Ok(fixed(mean(characters.as_str())?)),
        Some('e') => Ok(match mean(characters.as_str())? {
            mean_s if mean_s > 0.0 => Period::Exponential(mean_s),
            _ => Period::Sequential,
        }),
        Some('u') => {
            let times = characters.as_str();
            let Some((least, most)) = times.split_once(',') else {
                let text = "minimum interarrival time not followed by `,MAX_IAT' (rest: `')";
                return Err(error(text));
            };
            let least_s = mean(least)?;
            let most_s = real(most).filter(|&most_s| most_s >= least_s);
            let most_s = most_s.ok_or_else(|| error(&format!("illegal request period {most}")))?;
            Ok(if most_s > 0.0 {
                Period::Uniform(least_s, most_s)
            } else {
                Period::Sequential
            })
        }
        Some('v') => steps(characters.as_str()),
        Some(letter) if letter.is_ascii_alphabetic() => Err(error(&format!(
            "illegal interarrival distribution '{letter}' in {typed}"
        ))),
        _ => Ok(fixed(mean(typed)?)),
    }
}

/// Times and lengths in turns; the last length may be left out.
fn steps(typed: &str) -> Result<Period, Ending> {
    let numbers: Option<Vec<f64>> = typed.split(',').map(real).collect();
    let numbers = numbers.filter(|numbers| numbers.iter().all(|&number| number > 0.0));
    let numbers =
        numbers.ok_or_else(|| error(&format!("illegal mean interarrival time {typed}")))?;
    let steps = numbers.chunks(2).map(|step| match *step {
        [period_s, length_s] => (period_s, length_s),
        _ => (step[0], f64::INFINITY),
    });
    Ok(Period::Steps(steps.collect()))
}
