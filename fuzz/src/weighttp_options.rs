//! Target: command lines of weighttp.

use std::net::IpAddr;
use std::num::NonZeroU32;

use brunt_dropin::weighttp::{Form, Options, Proxy, explanation, heading};

/// Takes each line of the input as one word of a command line. What is refused is refused with
/// weighttp's version and message; what is accepted gives a plan, or such a refusal, and a command
/// line of brunt's own. Names are not resolved.
pub fn weighttp_options(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    for form in [Form::Json, Form::Text] {
        let options = match Options::parse(form, &words) {
            Ok(options) => options,
            Err(ending) => {
                assert!(ending.stdout.contains("weighttp 0."), "{words:?}");
                let is_told = ending.stderr.starts_with("\nerror: ");
                assert_eq!(ending.code, u8::from(is_told), "{words:?}: {ending:?}");
                continue;
            }
        };
        assert!(options.threads <= options.clients, "{options:?}");
        assert!(u64::from(options.clients.get()) <= options.requests);
        let is_shown = heading(&options).contains("weighttp 0.");
        assert_ne!(is_shown, options.is_quiet, "{options:?}");
        let is_resolved = match &options.proxy {
            Some(Proxy::Socket(_)) => true,
            Some(Proxy::Host(host, _)) => host.parse::<IpAddr>().is_ok(),
            None => options.host.parse::<IpAddr>().is_ok(),
        };
        if !is_resolved {
            continue;
        }
        let own = explanation(&options, b"body", NonZeroU32::MIN);
        match options.plan(b"body") {
            Ok(plan) => {
                let is_own = own.is_ok_and(|own| own.line.starts_with("brunt -c "));
                assert!(is_own, "{options:?}");
                assert_eq!(plan.stop.requests, Some(options.requests), "{options:?}");
                let asked = (options.threads, options.clients);
                assert_eq!((plan.workers, plan.connections), asked, "{options:?}");
                let request = plan.requests.first().and_then(|it| it.text);
                let request = request.expect("given");
                assert!(request.starts_with(options.method.as_bytes()));
            }
            Err(ending) => assert!(ending.code == 1 && !ending.stderr.is_empty(), "{ending:?}"),
        }
    }
}
