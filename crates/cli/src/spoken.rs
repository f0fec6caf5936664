//! What an experiment of several rounds loads: what is spoken follows from the URL.

use anyhow::{Result, bail};
use brunt_load::Target;

use crate::args::{CompareArguments, FindArguments, LoadArguments, SweepArguments};
use crate::plan::Load;
use crate::tcp_args::FramingArguments;
use crate::websocket_args::WebSocketArguments;
use crate::{list, tcp, websocket};

/// What was typed of a load, whatever it speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Typed<'a> {
    pub(crate) load: &'a LoadArguments,
    pub(crate) websocket: &'a WebSocketArguments,
    pub(crate) framing: &'a FramingArguments,
}

impl Typed<'_> {
    /// The server and its load; with planned requests at this rate, where it is given, whatever
    /// rate was typed. Without a URL the server may be that of a list.
    pub(crate) fn load(
        self,
        url: Option<&str>,
        rate: Option<f64>,
    ) -> Result<(Option<Target>, Load)> {
        let Self {
            load,
            websocket,
            framing,
        } = self;
        let is_websocket = url.is_some_and(websocket::is_websocket);
        let is_tcp = url.is_some_and(tcp::is_tcp);
        if !is_tcp && let Some(option) = framing.first_given() {
            bail!("{option} is about messages over TCP; give a URL as tcp://HOST:PORT or tls://");
        }
        if is_websocket {
            let (target, load) = websocket::load(load, websocket, url.unwrap_or_default(), rate)?;
            return Ok((Some(target), load));
        }
        if is_tcp {
            if let Some(option) = websocket.first_given_of_its_own() {
                bail!("{option} is about WebSocket; leave it out where messages go over TCP");
            }
            websocket::refuse_pipeline(load)?;
            let target = Target::parse_tcp(url, false, load.unix_socket.clone())?;
            let messages = tcp::Messages {
                sources: &websocket.messages,
                option: "--message",
                framing,
            };
            let made = tcp::load(load, messages, &target, rate)?.with_depth(websocket.depth);
            return Ok((Some(target), made));
        }
        if let Some(option) = websocket.first_given() {
            bail!("{option} is about messages; give a URL as ws://, wss://, tcp:// or tls://");
        }
        let target = url.map(|url| Target::parse(url, load.unix_socket.clone()));
        let listed = list::read(load, target.transpose()?)?;
        let made = Load::at(load, listed.target.as_ref(), rate)?.with_list(listed.requests);
        Ok((listed.target, made))
    }
}

impl SweepArguments {
    /// What was typed of the load.
    pub(crate) fn typed(&self) -> Typed<'_> {
        Typed {
            load: &self.load,
            websocket: &self.websocket,
            framing: &self.framing,
        }
    }
}

impl FindArguments {
    /// What was typed of the load.
    pub(crate) fn typed(&self) -> Typed<'_> {
        Typed {
            load: &self.load,
            websocket: &self.websocket,
            framing: &self.framing,
        }
    }
}

impl CompareArguments {
    /// What was typed of the load.
    pub(crate) fn typed(&self) -> Typed<'_> {
        Typed {
            load: &self.load,
            websocket: &self.websocket,
            framing: &self.framing,
        }
    }
}
