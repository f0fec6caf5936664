//! `--backend sim`: sessions in virtual time, in a simulation with its default settings.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use brunt_engine::{Control, Faults, Rounds, RunError, RunObserver, prepare_simulated_part};
use brunt_io::{clock, threads};
use brunt_load::{MessageExchange, Part, Plan, RequestGenerator, Round, Spoken};
use brunt_proto::messages::{Framing, Template, Values};
use brunt_record::Run;
use brunt_server::TcpService;
use brunt_sim::{SimMachine, SimMessages, SimSettings, SimStreams};

use crate::signals::Interrupts;

/// How often it is looked whether a signal came.
const LOOK_NS: u64 = 10_000_000;

/// Does `body` in a simulated session of `plan`, or of a part of it. A signal ends the simulated
/// round without a result.
pub(crate) fn in_session<T>(
    (plan, part): (Plan, Option<Part>),
    faults: Faults,
    generators: Vec<Box<dyn RequestGenerator>>,
    interrupts: &Interrupts,
    body: impl FnOnce(&mut dyn Rounds) -> Result<T>,
) -> Result<T> {
    let mut machine = SimMachine::new(settings_for(&plan)?);
    let prepared = prepare_simulated_part(plan, part, &mut machine)?.with_faults(faults);
    let control = prepared.control();
    let aborting = Aborting::start(interrupts.clone(), &control)?;
    let mut session = prepared.open(&mut machine, &control);
    if !generators.is_empty() {
        session.set_generators(generators)?;
    }
    let outcome = body(&mut Dated {
        session: &mut session,
    });
    drop(aborting);
    outcome
}

/// The default settings, with a server that answers what the plan sends.
fn settings_for(plan: &Plan) -> Result<SimSettings> {
    let mut settings = SimSettings::new(SimSettings::SEED);
    match &plan.spoken {
        Spoken::WebSocket(exchange) => settings.server.websocket.replies = exchange.replies,
        Spoken::Messages(exchange) => {
            settings.server.messages = Some(messages_of(plan, exchange)?);
        }
        Spoken::Streams(streams) => {
            let mut server = SimStreams::default();
            server.sends_per_s = server.sends_per_s.filter(|_| streams.receives);
            settings.server.streams = Some(server);
        }
        Spoken::Http(_) | Spoken::Connections => {}
    }
    Ok(settings)
}

/// How the simulated server takes and answers messages: each with five letters, or as many as are
/// awaited, framed as the plan awaits them.
fn messages_of(plan: &Plan, exchange: &MessageExchange) -> Result<SimMessages> {
    let opening = exchange
        .opening
        .as_ref()
        .and_then(|opening| opening.message.given());
    let texts = plan.requests.messages().iter().map(|it| &it.template);
    let texts: Vec<_> = texts.chain(opening).collect();
    Ok(SimMessages {
        framing: framing_of(&texts)?,
        reply: reply_of(&exchange.reply)?,
        ends_connection: exchange.reply == Framing::UntilClose,
        has_opening: opening.is_some(),
        ..SimMessages::default()
    })
}

/// Where messages end, which separates them: lines, or all of one length.
fn framing_of(texts: &[&Template]) -> Result<Framing> {
    let is_line = |text: &&Template| {
        let mut bytes = Vec::new();
        text.render(&Values::default(), &mut bytes);
        let end = bytes.iter().position(|&byte| byte == b'\n');
        end.is_some_and(|end| end + 1 == bytes.len())
    };
    if texts.iter().all(is_line) {
        return Ok(Framing::Line);
    }
    let length = texts.first().map_or(0, |text| text.bytes_max());
    let is_so_long = |text: &&Template| (text.bytes_min(), text.bytes_max()) == (length, length);
    match NonZeroU64::new(length as u64) {
        Some(bytes) if texts.iter().all(is_so_long) => Ok(Framing::Fixed(bytes)),
        _ => bail!(
            "the simulated server tells messages apart by their line ends, or by their length: end \
             each with \\n, as in 'PING\\r\\n', or give messages of one length"
        ),
    }
}

/// What it answers; absent for an echo, and where nothing is awaited.
fn reply_of(framing: &Framing) -> Result<Option<Vec<u8>>> {
    let letters = match framing {
        Framing::Echo | Framing::None => return Ok(None),
        Framing::Fixed(bytes) => bytes.get(),
        _ => 5,
    };
    let service: TcpService = format!("reply={framing}:{letters}").parse()?;
    Ok(match service {
        TcpService::Reply { reply, .. } => Some(reply),
        TcpService::Echo(_) | TcpService::Sink(_) | TcpService::Source(_) => None,
    })
}

/// A session whose runs say when they were made.
struct Dated<'a> {
    session: &'a mut dyn Rounds,
}

impl Rounds for Dated<'_> {
    fn round(&mut self, round: &Round, observer: &mut dyn RunObserver) -> Result<Run, RunError> {
        let started_unix_ms = clock::unix_ms();
        let mut run = self.session.round(round, observer)?;
        for agent in &mut run.agents {
            let from_start_ms = agent.clock.process_start_ns.unsigned_abs() / 1_000_000;
            agent.clock.window_start_unix_ms = started_unix_ms + from_start_ms;
        }
        Ok(run)
    }
}

/// A thread that aborts a simulation when a signal comes, until this is dropped.
struct Aborting(Arc<AtomicBool>);

impl Aborting {
    fn start(interrupts: Interrupts, control: &Arc<Control>) -> Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (control, seen) = (Arc::clone(control), Arc::clone(&is_over));
        let body = move || {
            while !seen.load(Ordering::Relaxed) {
                if interrupts.came() {
                    control.abort();
                }
                threads::sleep(LOOK_NS);
            }
        };
        threads::spawn("brunt-abort", body).context("cannot start a thread")?;
        Ok(Self(is_over))
    }
}

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
