//! Modules that scripts ask for: where they are searched, and stand-ins for those that are not
//! installed.

use crate::support::said_at_load;

/// Search paths without the folders of the system, so that what is installed on this machine does
/// not matter.
const NOTHING_INSTALLED: &str = "package.path = '' package.cpath = '' ";

fn said(source: &str) -> Vec<String> {
    said_at_load(&format!("{NOTHING_INSTALLED}{source}"))
}

#[test]
fn json_is_there() {
    let source = "local cjson = require('cjson') local v = cjson.decode('{\"a\":[1,2.5,\"x\"],\
                  \"n\":null,\"t\":true}') say(v.a[1], v.a[2], v.a[3], v.n == cjson.null, v.t, \
                  type(cjson.null)) say(cjson.encode({1, 'a\"b', {x = false}})) \
                  say(pcall(cjson.decode, '[')) say(require('cjson.safe').decode('['))";
    assert_eq!(
        said(source)[..4],
        [
            "1 2.5 x true true userdata",
            "[1,\"a\\\"b\",{\"x\":false}]",
            "false Expected value but found T_END at character 2",
            "nil Expected value but found T_END at character 2"
        ]
    );
}

#[test]
fn a_clock_is_there() {
    let source = "local socket = require('socket') local a = socket.gettime() socket.sleep(0.001) \
                  say(socket.gettime() - a >= 0.001, a > 1.6e9)";
    assert_eq!(said(source)[0], "true true");
}

#[test]
fn other_modules_are_missed_in_luas_words() {
    let source = "local is_there, message = pcall(require, 'no.such.module') say(is_there) \
                  say((message:gsub('\\n%s*', '|')))";
    let said = said(source);
    assert_eq!(said[0], "false");
    assert!(
        said[1].contains("module 'no.such.module' not found:|"),
        "{said:?}"
    );
    assert!(
        said[1].contains("|no stand-in for 'no.such.module' in brunt"),
        "{said:?}"
    );
}

#[test]
fn folders_of_distributions_are_searched() {
    let source = "local function has(path, part) return (';' .. path .. ';'):find(';' .. part .. \
                  ';', 1, true) ~= nil end say(has(package.path, './?.lua'), has(package.path, \
                  '/usr/share/lua/5.1/?.lua'), has(package.path, '/usr/share/lua/5.1/?/init.lua'), \
                  has(package.cpath, '/usr/lib/lua/5.1/?.so'))";
    assert_eq!(said_at_load(source)[0], "true true true true");
}

#[test]
fn a_module_beside_the_stand_ins_wins() {
    let source = "package.preload.socket = function() return {mine = true} end \
                  say(require('socket').mine)";
    assert_eq!(said(source)[0], "true");
}
