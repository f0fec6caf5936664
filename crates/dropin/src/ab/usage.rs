//! What ab prints about itself.

const OPTIONS: &str = include_str!("options.txt");

/// The usage text; `called` is the name that it was called by.
pub(super) fn usage(called: &str) -> String {
    format!("Usage: {called} [options] [http[s]://]hostname[:port]/path\n{OPTIONS}")
}

/// The lines that stand before everything else, as text or in HTML.
pub(super) fn banner(is_html: bool) -> String {
    const OWNERS: [&str; 2] = [
        "Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/",
        "Licensed to The Apache Software Foundation, http://www.apache.org/",
    ];
    let [first, second] = OWNERS;
    if is_html {
        let version = "This is ApacheBench, Version 2.3 <i>&lt;$Revision$&gt;</i>";
        format!("<p>\n {version}<br>\n {first}<br>\n {second}<br>\n</p>\n<p>\n")
    } else {
        format!("This is ApacheBench, Version 2.3 <$Revision$>\n{first}\n{second}\n\n")
    }
}
