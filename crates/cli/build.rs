//! Modules in C that scripts load call Lua, which is in the program: its symbols are exported.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for symbols in ["lua_*", "luaL_*", "luaJIT_*", "luaopen_*"] {
        println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol={symbols}");
    }
}
