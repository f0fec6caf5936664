//! A comparison of servers in words, in sections, as data, and in CSV.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use brunt_judge::{
    Basis, Bound, ChangeLimit, Claim, Compared, ComparedRounds, ComparedSide, Comparison, Effect,
    EndedEarly, LimitStands, ROUND_QUANTILES,
};
use brunt_record::Environment;

use super::{described_server, environment, figure, half, load_of, per_s};
use crate::figures::Object;
use crate::foreign::{data_name, word, write_csv};
use crate::objective::quantile;
use crate::page::{Page, Role, Tone};
use crate::{ReportError, units};

/// The sections of a comparison.
pub(super) fn sections(compared: &ComparedRounds, page: &mut Page) {
    let names = names(compared);
    let per_s = per_s(compared.load.as_ref());
    for (place, side) in compared.sides.iter().enumerate() {
        page.row(&side_name(place), &of_side(side), Tone::Plain);
    }
    if let Some(plan) = &compared.load {
        page.row("load", &load_of(plan, None), Tone::Plain);
    }
    rounds(compared, page);
    page.section("Environment", Role::Background);
    environment(&surroundings(compared), &compared.brunt_version, page);
    let pairs = compared.comparisons();
    for pair in &pairs {
        page.section(&compared_of(pair), Role::Outcome);
        rows(compared, pair, &names, per_s, page);
    }
    page.section("Limits", Role::Figures);
    limits(compared, page);
    page.section("Pairs of rounds", Role::Figures);
    let is_of_pairs = |pair: &Comparison| pair.basis == Basis::Pairs;
    if pairs.iter().any(is_of_pairs) {
        page.charts("pairs");
    }
    verdicts_of_sides(compared, page);
    if let Some(advice) = advice(compared) {
        page.row("next", &[advice], Tone::Plain);
    }
}

/// What was asked to stay within bounds, and whether it did.
fn limits(compared: &ComparedRounds, page: &mut Page) {
    for (label, stand, tone) in [
        ("FAILED", LimitStands::Exceeded, Tone::Bad),
        ("not judged", LimitStands::NotJudged, Tone::Bad),
        ("undecided", LimitStands::Open, Tone::Warning),
        ("passed", LimitStands::Kept, Tone::Plain),
    ] {
        for words in limits_that(compared, stand) {
            page.row(label, &[words], tone);
        }
    }
}

/// How often the rounds of each side had which verdict.
fn verdicts_of_sides(compared: &ComparedRounds, page: &mut Page) {
    let sides = compared.sides.iter().enumerate();
    let sides = sides.filter(|(_, side)| !side.rounds.is_empty());
    for (index, (place, side)) in sides.enumerate() {
        let label = if index == 0 { "verdicts" } else { "" };
        let words = format!("{}: {}", side_name(place), verdict_words(side));
        page.row(label, &[words], Tone::Plain);
    }
}

/// What the charts are drawn from.
pub(super) fn charts(compared: &ComparedRounds) -> Object {
    let pairs = compared.comparisons().into_iter();
    let pairs = pairs.filter(|pair| pair.basis == Basis::Pairs);
    let ratios: Vec<_> = pairs.map(|pair| ratios(compared, &pair)).collect();
    Object::new().with("pairs", ratios)
}

/// The ratio of each pair of rounds, less 1, and the estimate with its interval.
fn ratios(compared: &ComparedRounds, found: &Comparison) -> Object {
    let of = |side: usize| {
        let rounds = compared.sides[side].rounds.iter();
        rounds.map(|round| found.compared.figure(round))
    };
    let is_dropped = |place: usize| found.dropped.iter().any(|(pair, _)| *pair == place);
    let pairs = of(0).zip(of(found.place)).enumerate();
    let ratios = pairs.map(|(place, (one, other))| {
        let ratio = other? / one.filter(|one| *one > 0.0)? - 1.0;
        Some(ratio).filter(|_| !is_dropped(place))
    });
    Object::new()
        .with("compared", compared_of(found))
        .with("first", side_name(0))
        .with("second", side_name(found.place))
        .with("place", found.place)
        .with("ratios", ratios.collect::<Vec<_>>())
        .with("change", found.change)
}

/// A side in a few words: what it is called, its URL, the server there, and of a stored run where
/// it is from.
fn of_side(side: &ComparedSide) -> Vec<String> {
    let mut items = name_of(side);
    items.extend(side.server.iter().flat_map(described_server));
    if let Some(single) = &side.single_run {
        let begun = side.rounds.first().map(|round| round.started_unix_ms);
        items.push(single.file.clone());
        items.extend(begun.map(units::date_time));
        items.push(format!("brunt {}", single.brunt_version));
    }
    items
}

/// Where it was measured; without the server, where each side has its own.
fn surroundings(compared: &ComparedRounds) -> Environment {
    let mut known = compared.environment.clone();
    if compared.sides.iter().any(|side| side.server.is_some()) {
        known.server = None;
    }
    known
}

/// The sides in a line.
pub(super) fn sides(compared: &ComparedRounds) -> String {
    let sides = compared.sides.iter().enumerate();
    let sides = sides.map(|(place, side)| {
        let name = name_of(side).join(", ");
        format!("{}: {name}", side_name(place))
    });
    sides.collect::<Vec<_>>().join(" · ")
}

/// What a side is called, and its URL.
fn name_of(side: &ComparedSide) -> Vec<String> {
    let label = side.label.iter();
    let words = label.chain([&side.url]).map(|text| word(text).into_owned());
    words.collect()
}

/// The verdict of a run, or how often rounds had each.
fn verdict_words(side: &ComparedSide) -> String {
    if let (Some(_), Some(round)) = (&side.single_run, side.rounds.first()) {
        let name = round.verdict.name().to_lowercase();
        return if round.because.is_empty() {
            name
        } else {
            format!("{name}: {}", round.because)
        };
    }
    let mut counts = BTreeMap::<&str, usize>::new();
    for round in &side.rounds {
        *counts.entry(round.verdict.name()).or_default() += 1;
    }
    let words = counts.iter().map(|(name, count)| format!("{name} {count}"));
    words.collect::<Vec<_>>().join(", ").to_lowercase()
}

/// The rows of what was measured of each side.
fn rounds(compared: &ComparedRounds, page: &mut Page) {
    let sides = || compared.sides.iter();
    let windows = sides().filter_map(|side| side.rounds.first());
    let mut windows: Vec<_> = windows
        .map(|round| units::duration(round.window_ns))
        .collect();
    windows.dedup();
    let window = format!("{} each", windows.join(" and "));
    let pairs = compared.pairs();
    if sides().any(|side| side.single_run.is_some()) {
        let items = ["one of each, stored before".to_owned(), window];
        page.row("runs", &items, Tone::Plain);
    } else if pairs > 0 {
        let mut items = vec![format!("{pairs} of each, in turns"), window];
        let planned = compared.pairs_planned.map_or(pairs, |pairs| pairs as usize);
        items.extend(match compared.ended_early {
            Some(EndedEarly::Interrupted) => Some(format!("interrupted: {planned} were planned")),
            Some(EndedEarly::ClientLimited) => Some(format!("ended early: {planned} were planned")),
            None if pairs > planned => Some(format!("{} more than planned", pairs - planned)),
            None => None,
        });
        page.row("rounds", &items, Tone::Plain);
    }
}

/// A value of it in words; rates are of `per_s`.
fn value(found: &Comparison, value: f64, per_s: &str) -> String {
    match found.compared {
        Compared::SuccessesPerS => format!("{} {per_s}", units::rate(value)),
        Compared::ResponseQuantile(_) => units::duration(value as u64),
        Compared::ServerCpu => format!("{} per reply", units::duration(value as u64)),
    }
}

/// What was found of two sides; rates are of `per_s`.
fn rows(
    compared: &ComparedRounds,
    found: &Comparison,
    names: &[String],
    per_s: &str,
    page: &mut Page,
) {
    let tone = tone(compared, found);
    page.row(&compared_of(found), &[says(found, names)], tone);
    let value = |median: f64| value(found, median, per_s);
    let medians = found.medians.map(|(first, second)| {
        [(0, first), (found.place, second)]
            .map(|(side, median)| format!("{} {}", names[side], value(median)))
    });
    let medians = medians.map_or_else(|| vec!["not known".to_owned()], |both| both.into());
    let label = if found.basis == Basis::Pairs {
        "  medians"
    } else {
        "  measured"
    };
    page.row(label, &medians, Tone::Plain);
    if let Some(noise) = found.noise {
        let noise = units::percent(noise);
        let noise = format!("each side compared with itself differs by {noise} at most");
        page.row("  noise", &[noise], Tone::Plain);
    }
    for (pair, reason) in &found.dropped {
        let words = format!("pair {}: {reason}", pair + 1);
        page.row("  dropped", &[words], Tone::Plain);
    }
}

/// How what a pair shows stands out: most where it exceeds a limit, and not where it is better or
/// no different.
fn tone(compared: &ComparedRounds, found: &Comparison) -> Tone {
    let exceeded = compared.limits_that(LimitStands::Exceeded);
    if exceeded.iter().any(|(_, of)| of == found) {
        return Tone::Bad;
    }
    let is_better_if_more = found.compared.is_better_if_more();
    let is_better = |change: Effect| (change.value > 0.0) == is_better_if_more;
    match found.claim {
        Claim::NoDifference { .. } => Tone::Plain,
        Claim::Differs if found.change.is_some_and(is_better) => Tone::Strong,
        Claim::Differs | Claim::Nothing(_) => Tone::Warning,
    }
}

/// A comparison as it is stored: its own fields, and what is derived from them and ignored when the
/// comparison is read again.
pub(super) fn stored(compared: &ComparedRounds) -> Object {
    let names = names(compared);
    let pairs = compared.comparisons();
    let pairs: Vec<Object> = pairs.iter().map(|pair| figures(pair, &names)).collect();
    Object::of(compared)
        // Each side compared with the first.
        .with("comparisons", pairs)
        // The limits that were exceeded, of which nothing can be said, and which are neither shown
        // to be exceeded nor shown to be kept, in words.
        .with("exceeded", limits_that(compared, LimitStands::Exceeded))
        .with("not_judged", limits_that(compared, LimitStands::NotJudged))
        .with("open", limits_that(compared, LimitStands::Open))
        // Whether each comparison says something.
        .with("is_decided", compared.is_decided())
}

/// What a comparison of two sides shows.
fn figures(found: &Comparison, names: &[String]) -> Object {
    let change = found.change;
    // A bound does not say where the other end is.
    let low = change.filter(|_| found.bound != Some(Bound::AtMost));
    let high = change.filter(|_| found.bound != Some(Bound::AtLeast));
    let [_, _, compared] = compared_names(found.compared);
    let claim = match found.claim {
        Claim::Differs => "differs",
        Claim::NoDifference { .. } => "no_difference",
        Claim::Nothing(_) => "nothing",
    };
    Object::new()
        .with("compared", compared)
        .with("sides", [side_name(0), side_name(found.place)])
        .with("claim", claim)
        .with("says", says(found, names))
        // Whether pairs of rounds were compared, or a stored run of each side.
        .with("basis", found.basis)
        // Pairs of rounds that were made; 1 of runs.
        .with("pairs", found.pairs)
        // The pairs that do not count, from 0, and why.
        .with("dropped", &found.dropped)
        // How many of the pairs that count have a round in which others took CPUs that it needed.
        .with("disturbed", found.disturbed)
        // Of the two sides over the pairs that count.
        .with("medians", found.medians)
        // The second side over the first, as a ratio less 1. The intervals of all comparisons of
        // pairs hold together with 97.5 %, those of stored runs each with 95 %.
        .with("change", change.map(|change| change.value))
        .with("change_low", low.map(|change| change.low))
        .with("change_high", high.map(|change| change.high))
        // Whether the change is known only to be at least or at most this: brunt was the limit of
        // one side.
        .with("bound", found.bound)
        // The two-sided permutation test; null without pairs, and of bounds.
        .with("p_value", found.p_value)
        // What a comparison of each side with itself gave, at most.
        .with("noise", found.noise)
}

/// A row per round of each side.
pub(super) fn table(compared: &ComparedRounds, out: &mut dyn io::Write) -> Result<(), ReportError> {
    const COLUMNS: &str = "side url pair started_unix_ms window_ns verdict successes_per_s error_share \
         response_p50_ns response_p90_ns response_p99_ns response_p99_9_ns";
    let header: Vec<String> = COLUMNS.split(' ').map(str::to_owned).collect();
    let rows = compared.sides.iter().enumerate().flat_map(|(place, side)| {
        side.rounds.iter().zip(1..).map(move |(round, number)| {
            let mut row = vec![
                side_name(place),
                side.url.clone(),
                format!("{number}"),
                round.started_unix_ms.to_string(),
                round.window_ns.to_string(),
                data_name(round.verdict),
                figure(round.successes_per_s),
                figure(round.error_share()),
            ];
            row.extend(ROUND_QUANTILES.map(|(_, q)| figure(round.response.quantile_ns(q))));
            row
        })
    });
    write_csv(&header, rows, out)
}

/// A, B, C and so on; behind Z the number.
pub fn side_name(place: usize) -> String {
    match u8::try_from(place) {
        Ok(place @ 0..26) => char::from(b'A' + place).to_string(),
        _ => (place + 1).to_string(),
    }
}

/// Longest label that stands for a side within a sentence.
const LABEL_BYTES_MAX: usize = 20;

/// What the sides are called in sentences: by their labels, where each has a short one of its own;
/// else A, B, C and so on.
fn names(compared: &ComparedRounds) -> Vec<String> {
    let labels = compared.sides.iter().filter_map(|side| side.label.clone());
    // A longer one, or several words, is a command.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.+/@".contains(letter);
    let lengths = 1..=LABEL_BYTES_MAX;
    let is_name = |label: &String| lengths.contains(&label.len()) && label.chars().all(is_plain);
    let labels: Vec<String> = labels.filter(is_name).collect();
    let different: BTreeSet<&String> = labels.iter().collect();
    if different.len() == compared.sides.len() {
        labels
    } else {
        (0..compared.sides.len()).map(side_name).collect()
    }
}

/// From this factor on, a change is reported as a factor, and not in percent.
const TIMES_LEAST: f64 = 10.0;

/// The sentence.
fn says(found: &Comparison, names: &[String]) -> String {
    let (first, second) = (&names[0], &names[found.place]);
    match (&found.claim, found.change) {
        (Claim::Differs, Some(change)) => difference(found, names, &change),
        (Claim::NoDifference { visible }, Some(change)) => {
            let (changes, basis) = (changes(found.basis, change), basis(found));
            let visible = units::percent(*visible);
            format!(
                "no difference shown between {first} and {second} ({changes}, {basis}); less than \
                 {visible} would not show"
            )
        }
        (Claim::Nothing(reason), _) => {
            format!("nothing can be said of {first} and {second}: {reason}")
        }
        // Both claims rest on a change.
        (_, None) => format!("nothing can be said of {first} and {second}"),
    }
}

/// What would make a comparison say something that brunt was the limit of throughout.
fn advice(compared: &ComparedRounds) -> Option<String> {
    if compared.ended_early != Some(EndedEarly::ClientLimited) {
        return None;
    }
    let rounds = compared.sides.iter().flat_map(|side| &side.rounds);
    let rates = rounds.filter_map(|round| round.successes_per_s);
    let slowest = rates.fold(f64::INFINITY, f64::min);
    let rate = half(slowest).unwrap_or_else(|| "RATE".to_owned());
    Some(format!(
        "brunt was the limit of all sides: compare response times at a rate that brunt keeps \
         (-r {rate}), or give brunt more CPUs (-t)"
    ))
}

/// The interval of a change in words.
fn changes(basis: Basis, change: Effect) -> String {
    let [low, high] = [change.low, change.high].map(units::percent_change);
    format!("{} CI {low} to {high}", confidence(basis))
}

/// The confidence of intervals: those of all comparisons of pairs hold together.
fn confidence(basis: Basis) -> &'static str {
    match basis {
        Basis::Pairs => "97.5 %",
        Basis::SingleRuns => "95 %",
    }
}

/// What a comparison rests on, and what its interval does not show.
fn basis(comparison: &Comparison) -> String {
    match comparison.basis {
        Basis::Pairs => {
            let pairs = comparison.pairs - comparison.dropped.len();
            match comparison.disturbed {
                0 => format!("{pairs} pairs"),
                disturbed => format!("{pairs} pairs, {disturbed} of them disturbed"),
            }
        }
        Basis::SingleRuns => "from within one run of each: how runs vary from one to the next is \
                              not shown"
            .to_owned(),
    }
}

/// `B is 4.2 % faster (97.5 % CI 3.1 % to 5.4 %, 10 pairs)`.
fn difference(found: &Comparison, names: &[String], change: &Effect) -> String {
    let compared = found.compared;
    let (first, second) = (&names[0], &names[found.place]);
    let is_more = change.value > 0.0;
    // The end nearer to no difference comes first.
    let ends = if is_more {
        [change.value, change.low, change.high]
    } else {
        [change.value, change.high, change.low]
    };
    let times = ends.map(|change| {
        if is_more {
            1.0 + change
        } else {
            1.0 / (1.0 + change)
        }
    });
    let is_times = times[0] >= TIMES_LEAST;
    let [value, near, far] = if is_times {
        times.map(|times| format!("{} times", units::rate(times)))
    } else {
        ends.map(|change| units::percent(change.abs()))
    };
    let value = match found.bound {
        Some(_) => format!("at least {value}"),
        None => value,
    };
    let of_quantile = match compared {
        Compared::ResponseQuantile(q) => format!("{} of ", quantile(q)),
        _ => String::new(),
    };
    let (verb, as_times, [more, less]) = match compared {
        Compared::SuccessesPerS => ("is", "as fast as", ["faster", "slower"]),
        Compared::ResponseQuantile(_) => ("is", "that of", ["higher", "lower"]),
        Compared::ServerCpu => (
            "uses",
            "as much CPU per reply as",
            ["more CPU per reply", "less CPU per reply"],
        ),
    };
    let how = match (is_times, is_more) {
        (true, true) => format!("{of_quantile}{second} {verb} {value} {as_times} {first}"),
        (true, false) => format!("{of_quantile}{first} {verb} {value} {as_times} {second}"),
        (false, true) => format!("{of_quantile}{second} {verb} {value} {more}"),
        (false, false) => format!("{of_quantile}{second} {verb} {value} {less}"),
    };
    let (confidence, basis) = (confidence(found.basis), basis(found));
    let limited = match found.bound {
        None => return format!("{how} ({confidence} CI {near} to {far}, {basis})"),
        Some(Bound::AtLeast) => second,
        Some(Bound::AtMost) => first,
    };
    format!("{how} ({confidence} CI from {near}, {basis}; brunt was the limit of {limited})")
}

/// What is compared: its heading, as it is typed, and its name in data.
fn compared_names(compared: Compared) -> [String; 3] {
    let [heading, typed, data] = match compared {
        Compared::SuccessesPerS => ["throughput", "rate", "successes_per_s"],
        Compared::ResponseQuantile(q) => {
            let name = quantile(q);
            let data = format!("response_{}_ns", name.replace('.', "_"));
            return [name.clone(), name, data];
        }
        Compared::ServerCpu => ["server CPU", "cpu", "server_cpu_ns_per_reply"],
    };
    [heading, typed, data].map(str::to_owned)
}

/// The heading of what was compared.
fn compared_of(found: &Comparison) -> String {
    let [heading, ..] = compared_names(found.compared);
    heading
}

/// What is asked, as it is typed: `p99 > +5 %`.
fn limit(limit: &ChangeLimit) -> String {
    let sign = if limit.is_rise { ">" } else { "<" };
    let change = units::percent_change(limit.change);
    let [_, typed, _] = compared_names(limit.compared);
    format!("--fail-if {typed} {sign} {change}")
}

/// The limits that stand so, a line each.
pub fn limits_that(compared: &ComparedRounds, stand: LimitStands) -> Vec<String> {
    let names = names(compared);
    let limits = compared.limits_that(stand).into_iter();
    let lines = limits.map(|(asked, pair)| {
        let words = match (stand, pair.change) {
            (LimitStands::Open, Some(change)) => {
                let changes = changes(pair.basis, change);
                format!("too few rounds to tell ({}: {changes})", names[pair.place])
            }
            (LimitStands::Open, None) => {
                format!("too few rounds to tell ({})", says(&pair, &names))
            }
            _ => says(&pair, &names),
        };
        format!("{}: {words}", limit(&asked))
    });
    lines.collect()
}
