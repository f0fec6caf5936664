//! What makes the requests of a plan that does not hold them, as it travels with the plan: a
//! script, or the sessions of a log.

use brunt_load::{Plan, stored_bytes};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::agent::AdmissionError;

/// What agents do in a round: all of them are given the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// The plan.
    pub plan: Plan,
    /// What makes its requests; absent where they are those of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
}

/// What makes requests. Each worker has one of its own, by its number among all workers of the
/// plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Program {
    /// A script in Lua.
    Script(ScriptText),
    /// The sessions of a log.
    Sessions(SessionsText),
}

/// A script, and what is given to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptText {
    /// What messages call it.
    pub name: String,
    /// What is in its file.
    #[serde(with = "stored_bytes")]
    pub text: Vec<u8>,
    /// The URL, as it was typed.
    pub url: String,
    /// `wrk.method`.
    pub method: String,
    /// `wrk.body`; empty without one.
    #[serde(with = "stored_bytes")]
    pub body: Vec<u8>,
    /// `wrk.headers`: names and values.
    pub headers: Vec<(String, String)>,
    /// What `init` is given after the URL.
    pub arguments: Vec<String>,
}

/// The sessions of a log, and what is given to their requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsText {
    /// The log.
    #[serde(with = "stored_bytes")]
    pub log: Vec<u8>,
    /// Pause after a burst that has none of its own, nanoseconds.
    pub think_ns: u64,
    /// Header fields of all requests.
    pub headers: Vec<(String, String)>,
    /// Whether the names of requests are without queries.
    pub hides_queries: bool,
}

/// Why what makes requests in one process cannot do so in several.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The script has a function that is called after the load, with what all threads have.
    #[error(
        "the script has {0}(), which is called after the load beside the threads of one process, \
         and those of a fleet are in several; leave {0}() out, and take what it says of the run \
         from the report (-o FILE.json)"
    )]
    LastCall(&'static str),
}

impl Program {
    /// Whether an agent makes requests with it that runs scripts or, without `allows_scripts`, does
    /// not.
    ///
    /// # Errors
    ///
    /// It does not.
    pub fn admit(&self, allows_scripts: bool) -> Result<(), AdmissionError> {
        match self {
            Self::Script(_) if !allows_scripts => Err(AdmissionError::Script),
            Self::Script(_) | Self::Sessions(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use brunt_load::{RequestSet, RequestSpec, Target};

    use super::*;

    fn script() -> Program {
        Program::Script(ScriptText {
            name: "a.lua".to_owned(),
            text: b"-- \xff\0".to_vec(),
            url: "http://h/".to_owned(),
            method: "GET".to_owned(),
            body: Vec::new(),
            headers: vec![("A".to_owned(), "b".to_owned())],
            arguments: vec!["1".to_owned()],
        })
    }

    fn sessions() -> Program {
        Program::Sessions(SessionsText {
            log: b"/a\n\n/b\xff".to_vec(),
            think_ns: 7,
            headers: Vec::new(),
            hides_queries: true,
        })
    }

    #[test]
    fn what_travels_is_read_as_it_was_written() {
        let target = Target::parse("http://h/", None).expect("a URL");
        let plan = Plan::new(target, RequestSet::one(RequestSpec::get("/")));
        for program in [None, Some(script()), Some(sessions())] {
            let assignment = Assignment {
                plan: plan.clone(),
                program,
            };
            let bytes = serde_json::to_vec(&assignment).expect("JSON");
            let read: Assignment = serde_json::from_slice(&bytes).expect("an assignment");
            assert_eq!(read.program, assignment.program);
            assert_eq!(read.plan, assignment.plan);
        }
    }

    #[test]
    fn scripts_need_leave() {
        assert_eq!(script().admit(false), Err(AdmissionError::Script));
        assert_eq!(script().admit(true), Ok(()));
        assert_eq!(sessions().admit(false), Ok(()));
        let words = AdmissionError::Script.to_string();
        assert!(words.contains("--allow-scripts"), "{words}");
    }
}
