//! What an experiment of several rounds loads: what is spoken follows from the URL.

use anyhow::Result;
use brunt_io::cpu::usable_cpus;
use brunt_load::{Plan, Target};

use crate::args::AnyLoadArguments;
use crate::plan::Load;
use crate::refusals::{self, Given};
use crate::{list, tcp, websocket, websocket_args};

impl AnyLoadArguments {
    /// The server and its load; with planned requests at this rate, where it is given, whatever
    /// rate was typed. Without a URL the server may be that of a list.
    pub(crate) fn load(
        &self,
        given: &Given,
        url: Option<&str>,
        rate: Option<f64>,
    ) -> Result<(Option<Target>, Load)> {
        let Self {
            load,
            websocket,
            framing,
        } = self;
        let is_websocket = url.is_some_and(websocket_args::is_websocket);
        let is_tcp = url.is_some_and(tcp::is_tcp);
        if !is_tcp {
            given.refuse(refusals::NOT_TCP)?;
        }
        if is_websocket {
            given.refuse(refusals::MESSAGES)?;
            given.refuse(refusals::PIPELINE)?;
            let (target, load) = websocket::load(load, websocket, url.unwrap_or_default(), rate)?;
            return Ok((Some(target), load));
        }
        if is_tcp {
            given.refuse(refusals::NOT_WEBSOCKET)?;
            given.refuse(refusals::PIPELINE)?;
            given.refuse(refusals::MESSAGES)?;
            given.refuse(refusals::TCP)?;
            let target = Target::parse_tcp(url, false, load.unix_socket.clone())?;
            let messages = tcp::Messages {
                list: &websocket.list,
                option: "--message",
                framing,
            };
            let made = tcp::load(load, messages, &target, rate)?.with_depth(websocket.depth);
            return Ok((Some(target), made));
        }
        given.refuse(refusals::HTTP)?;
        let target = url.map(|url| Target::parse_to_fill_in(url, load.unix_socket.clone()));
        let listed = list::read(load, target.transpose()?)?;
        let made = Load::at(load, listed.target.as_ref(), rate)?.with_list(listed.requests);
        Ok((listed.target, made))
    }

    /// The plan of this load as [`Self::load`] gives it, with a window of this length where nothing
    /// that was typed says how long it is. Absent without a server.
    pub(crate) fn plan(
        &self,
        given: &Given,
        url: Option<&str>,
        rate: Option<f64>,
        window_ns: u64,
    ) -> Result<Option<Plan>> {
        let (target, made) = self.load(given, url, rate)?;
        let workers = brunt_engine::default_workers(&made.model, usable_cpus());
        let plan = target.map(|target| {
            let load = &self.load;
            let mut plan = made.plan(load, target, workers, None);
            if load.duration.is_none() && load.stages.is_none() && load.requests.is_none() {
                plan.stop.duration_ns = Some(window_ns);
            }
            plan
        });
        Ok(plan)
    }
}
