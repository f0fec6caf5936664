//! Settings of a simulation whose server answers what a plan sends.

use std::num::NonZeroU64;

use brunt_load::{MessageExchange, Plan, Spoken};
use brunt_proto::messages::{Framing, Template, Values};
use brunt_server::{ParseTcpError, TcpService};
use thiserror::Error;

use super::settings::{SimMessages, SimSettings};
use super::streams::SimStreams;

/// Why the simulated server cannot answer a plan.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Unanswerable {
    /// Messages have no end that the server knows.
    #[error(
        "the simulated server tells messages apart by their line ends, or by their length: end \
         each with \\n, as in 'PING\\r\\n', or give messages of one length"
    )]
    Endless,
    /// The server has no reply that ends like this.
    #[error(transparent)]
    Reply(#[from] ParseTcpError),
}

impl SimSettings {
    /// The settings of `brunt --backend sim`: the default ones, with a server that answers what the
    /// plan sends.
    ///
    /// # Errors
    ///
    /// There is no such server.
    pub fn answering(plan: &Plan) -> Result<Self, Unanswerable> {
        let mut settings = Self::new(Self::SEED);
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
            // The default server answers any request, and takes any connection.
            Spoken::Http(_) | Spoken::Connections => {}
        }
        Ok(settings)
    }
}

/// How the simulated server takes and answers messages: each with five letters, or as many as are
/// awaited, framed as the plan awaits them.
fn messages_of(plan: &Plan, exchange: &MessageExchange) -> Result<SimMessages, Unanswerable> {
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
fn framing_of(texts: &[&Template]) -> Result<Framing, Unanswerable> {
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
        _ => Err(Unanswerable::Endless),
    }
}

/// What it answers; absent for an echo, and where nothing is awaited.
fn reply_of(framing: &Framing) -> Result<Option<Vec<u8>>, Unanswerable> {
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
