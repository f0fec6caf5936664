//! Builds LuaJIT such that another thread can end a compiled loop of a script (`Interrupter` in
//! `src/lua/state.rs`). A flag of the C compiler alone does that, and LuaJIT's makefile takes it
//! from the environment alone: this program starts itself again with the flag in there.

use std::env;
use std::process::Command;

const VARIABLE: &str = "TARGET_CFLAGS";
const FLAG: &str = "-DLUAJIT_ENABLE_CHECKHOOK";
/// LuaJIT raises errors by the unwinder of GCC's library, which asks for glibc. Beside musl it
/// unwinds its stack itself.
const MUSL_FLAG: &str = "-DLUAJIT_NO_UNWIND";

fn main() {
    let flags = env::var(VARIABLE).unwrap_or_default();
    if flags.split_whitespace().any(|flag| flag == FLAG) {
        luajit_src::Build::new().build().print_cargo_metadata();
        return;
    }
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    let musl_flag = match env::var("CARGO_CFG_TARGET_ENV").as_deref() {
        Ok("musl") => MUSL_FLAG,
        _ => "",
    };
    let own = env::current_exe().expect("the build script knows its path");
    let status = Command::new(own)
        .env(VARIABLE, format!("{FLAG} {musl_flag} {flags}"))
        .status();
    let status = status.expect("the build script starts again");
    assert!(status.success(), "LuaJIT is not built: {status}");
}
