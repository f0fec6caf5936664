//! Scripts of a test, and what they say.

use std::path::PathBuf;

use brunt_load::{Batch, ConnectionNumber, GeneratorError, GeneratorResponse, RequestGenerator};
use brunt_script::{Called, Flavour, Script, ScriptError, ScriptOptions, ScriptTarget};
use tempfile::TempDir;

/// The URL of most tests. Nothing is connected to.
pub(crate) const URL: &str = "http://127.0.0.1:8123/p/a?q=1#frag";

/// A script in a folder of its own. `say(…)` in it adds a line to what [`Trial::said`] returns.
pub(crate) struct Trial {
    folder: TempDir,
    pub(crate) options: ScriptOptions,
}

impl Trial {
    pub(crate) fn new(source: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("script.lua");
        let said = folder.path().join("said.txt");
        // On the first line, so that the numbers of the others are those of the test's text.
        let say = format!(
            "function say(...) local t = {{...}} for i = 1, select('#', ...) do t[i] = \
             tostring(t[i]) end local f = io.open({said:?}, 'a') f:write(table.concat(t, ' '), \
             '\\n') f:close() end "
        );
        std::fs::write(&path, format!("{say}{source}")).expect("a script");
        Self {
            folder,
            options: ScriptOptions {
                path,
                text: None,
                target: ScriptTarget::from_url(URL).expect("a URL"),
                is_resolved: false,
                method: None,
                body: None,
                headers: Vec::new(),
                arguments: Vec::new(),
                workers: 1,
                flavour: Flavour::Wrk,
                names_max: 1_000,
            },
        }
    }

    pub(crate) fn with(source: &str, change: impl FnOnce(&mut ScriptOptions)) -> Self {
        let mut trial = Self::new(source);
        change(&mut trial.options);
        trial
    }

    pub(crate) fn load(&self) -> Script {
        self.try_load().expect("a script that loads")
    }

    pub(crate) fn try_load(&self) -> Result<Script, ScriptError> {
        Script::load(&self.options, &Called::default())
    }

    /// The message of an error, with the name of the script alone.
    pub(crate) fn refusal(&self) -> String {
        let error = self.try_load().expect_err("a script that does not load");
        self.plain(&error.to_string())
    }

    pub(crate) fn plain(&self, message: &str) -> String {
        let folder = format!("{}/", self.folder.path().display());
        message.replace(&folder, "")
    }

    /// What the script has said since it was asked last.
    pub(crate) fn said(&self) -> Vec<String> {
        let path: PathBuf = self.folder.path().join("said.txt");
        let said = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(path);
        said.lines().map(|line| self.plain(line)).collect()
    }
}

/// What a script says while it is loaded.
pub(crate) fn said_at_load(source: &str) -> Vec<String> {
    said_with(source, |_| {})
}

/// The same, with other options.
pub(crate) fn said_with(source: &str, change: impl FnOnce(&mut ScriptOptions)) -> Vec<String> {
    let trial = Trial::with(source, change);
    let _script = trial.load();
    trial.said()
}

/// A script of one worker, loaded, and its generator.
pub(crate) fn started(source: &str) -> (Trial, Script, Box<dyn RequestGenerator>) {
    let trial = Trial::new(source);
    let mut script = trial.load();
    let generator = only(&mut script);
    (trial, script, generator)
}

/// A batch and its text, where that is new.
pub(crate) fn next(
    generator: &mut Box<dyn RequestGenerator>,
) -> Result<(Batch, String), GeneratorError> {
    let mut text = Vec::new();
    let batch = generator.next(ConnectionNumber(0), &mut text)?;
    Ok((batch, String::from_utf8_lossy(&text).into_owned()))
}

/// The only generator of a script.
pub(crate) fn only(script: &mut Script) -> Box<dyn RequestGenerator> {
    script.generators().expect("generators").remove(0)
}

pub(crate) fn respond(
    generator: &mut Box<dyn RequestGenerator>,
    status: u16,
    headers: &[(&[u8], &[u8])],
    body: &[u8],
) -> Result<(), GeneratorError> {
    generator.response(&GeneratorResponse {
        status,
        headers,
        body,
        ..GeneratorResponse::default()
    })
}

/// The lines of a request's head, in an order of their own, and its body.
pub(crate) fn lines(request: &str) -> (String, Vec<String>, String) {
    let (head, body) = request.split_once("\r\n\r\n").expect("a whole head");
    let mut lines = head.split("\r\n").map(str::to_owned);
    let first = lines.next().unwrap_or_default();
    let mut headers: Vec<_> = lines.collect();
    headers.sort();
    (first, headers, body.to_owned())
}
