//! Lua's values as text, without raising errors.

use std::ffi::CStr;

use mlua_sys as ffi;

/// What one call of `request` may give: one request or several, bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 20;

/// The name of the chunk `calls.lua`; a script has no such name.
pub(super) const CALLS_CHUNK: &CStr = c"=(brunt)";

/// Integers below it are printed by Lua digit by digit (`%.14g`).
const PLAIN_INTEGER_MAX: f64 = 1e14;

/// The bytes of the string at `index`; of a number, too, where it may be changed into a string.
/// `None` for other types.
///
/// # Safety
///
/// `raw` is a state of this thread's, `index` one of its stack. The bytes are valid as long as the
/// string is on the stack or kept elsewhere. A number that is a key of a table being traversed must
/// not be given.
pub(super) unsafe fn bytes<'a>(raw: *mut ffi::lua_State, index: i32) -> Option<&'a [u8]> {
    let mut length = 0;
    // SAFETY: as promised by the caller; Lua says where the string is and how long.
    unsafe {
        let text = ffi::lua_tolstring(raw, index, &raw mut length);
        (!text.is_null()).then(|| std::slice::from_raw_parts(text.cast(), length))
    }
}

/// Why a text is not put together here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// Only Lua can turn a value into text.
    NeedsLua,
    /// The text has more than [`TEXT_BYTES_MAX`] bytes.
    TooLong,
}

/// Appends the value at `index` as `%s` of `string.format` would.
///
/// # Safety
///
/// `raw` is a state of this thread's with room for a value more, `index` an absolute one.
pub(super) unsafe fn append(
    raw: *mut ffi::lua_State,
    index: i32,
    text: &mut Vec<u8>,
) -> Result<(), Unfit> {
    // SAFETY: as promised by the caller. A number is changed on a copy, so that keys stay as they
    // are.
    unsafe {
        match ffi::lua_type(raw, index) {
            ffi::LUA_TSTRING => {
                let bytes = bytes(raw, index).unwrap_or_default();
                if bytes.len() > TEXT_BYTES_MAX - text.len().min(TEXT_BYTES_MAX) {
                    return Err(Unfit::TooLong);
                }
                text.extend_from_slice(bytes);
            }
            ffi::LUA_TNUMBER => {
                let number = ffi::lua_tonumber(raw, index);
                if number.fract() == 0.0 && number.abs() < PLAIN_INTEGER_MAX && number != 0.0 {
                    text.extend_from_slice(itoa::Buffer::new().format(number as i64).as_bytes());
                } else {
                    ffi::lua_pushvalue(raw, index);
                    text.extend_from_slice(bytes(raw, -1).unwrap_or_default());
                    ffi::lua_settop(raw, -2);
                }
            }
            ffi::LUA_TBOOLEAN => {
                let is_true = ffi::lua_toboolean(raw, index) != 0;
                text.extend_from_slice(if is_true { b"true" } else { b"false" });
            }
            ffi::LUA_TNIL => text.extend_from_slice(b"nil"),
            _ => return Err(Unfit::NeedsLua),
        }
    }
    Ok(())
}

/// Appends the line of a header field whose name and value are the strings on top of the stack.
///
/// # Safety
///
/// `raw` is a state of this thread's with two strings on top of its stack.
pub(super) unsafe fn append_line(
    raw: *mut ffi::lua_State,
    text: &mut Vec<u8>,
) -> Result<(), Unfit> {
    // SAFETY: as promised by the caller. Every byte up to the new length is written, within what is
    // reserved.
    unsafe {
        let (mut name_bytes, mut value_bytes) = (0, 0);
        let name = ffi::lua_tolstring(raw, -2, &raw mut name_bytes).cast::<u8>();
        let value = ffi::lua_tolstring(raw, -1, &raw mut value_bytes).cast::<u8>();
        // The lengths are those of two strings in memory: their sum is no overflow.
        if name_bytes + value_bytes > TEXT_BYTES_MAX - text.len().min(TEXT_BYTES_MAX) {
            return Err(Unfit::TooLong);
        }
        text.reserve(name_bytes + value_bytes + 4);
        let mut end = text.as_mut_ptr().add(text.len());
        end.copy_from_nonoverlapping(name, name_bytes);
        end = end.add(name_bytes);
        end.copy_from_nonoverlapping(b": ".as_ptr(), 2);
        end = end.add(2);
        end.copy_from_nonoverlapping(value, value_bytes);
        end = end.add(value_bytes);
        end.copy_from_nonoverlapping(b"\r\n".as_ptr(), 2);
        text.set_len(text.len() + name_bytes + value_bytes + 4);
    }
    Ok(())
}

/// The error message on top of the stack, which is popped.
///
/// # Safety
///
/// `raw` is a state of this thread's with a value on its stack.
pub(super) unsafe fn pop_message(raw: *mut ffi::lua_State) -> String {
    // SAFETY: as promised by the caller; the message is copied before it is popped.
    unsafe {
        let message = match bytes(raw, -1) {
            Some(text) => String::from_utf8_lossy(without_our_place(text)).into_owned(),
            None => {
                let kind = ffi::lua_typename(raw, ffi::lua_type(raw, -1));
                let kind = CStr::from_ptr(kind).to_string_lossy();
                format!("the script raised a {kind} value as an error")
            }
        };
        ffi::lua_settop(raw, -2);
        message
    }
}

/// A message without the place in `calls.lua` in front of it: an error that a script raises for its
/// caller (`error(message, 2)`) has none in wrk, where C is what calls.
fn without_our_place(message: &[u8]) -> &[u8] {
    let behind_name = message.strip_prefix(b"(brunt):").unwrap_or_default();
    let digits = behind_name.iter().take_while(|byte| byte.is_ascii_digit());
    let rest = &behind_name[digits.count()..];
    rest.strip_prefix(b": ").unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_places_are_not_shown() {
        for (message, shown) in [
            ("(brunt):12: no", "no"),
            ("script.lua:3: (brunt):1: no", "script.lua:3: (brunt):1: no"),
            ("(brunt):", "(brunt):"),
            ("(brunt):1", "(brunt):1"),
            ("", ""),
        ] {
            assert_eq!(without_our_place(message.as_bytes()), shown.as_bytes());
        }
    }
}
