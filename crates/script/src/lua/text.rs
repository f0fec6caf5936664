//! Lua's values as text, without raising errors.

use mlua_sys as ffi;

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

/// Appends the value at `index` as `%s` of `string.format` would; false where that needs Lua.
///
/// # Safety
///
/// `raw` is a state of this thread's with room for a value more, `index` an absolute one.
pub(super) unsafe fn append(raw: *mut ffi::lua_State, index: i32, text: &mut Vec<u8>) -> bool {
    // SAFETY: as promised by the caller. A number is changed on a copy, so that keys stay as they
    // are.
    unsafe {
        match ffi::lua_type(raw, index) {
            ffi::LUA_TSTRING => text.extend_from_slice(bytes(raw, index).unwrap_or_default()),
            ffi::LUA_TNUMBER => {
                let number = ffi::lua_tonumber(raw, index);
                if number.fract() == 0.0 && number.abs() < PLAIN_INTEGER_MAX && number != 0.0 {
                    append_integer(number as i64, text);
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
            _ => return false,
        }
    }
    true
}

fn append_integer(number: i64, text: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        text.push(b'-');
    }
    text.extend_from_slice(&digits[start..]);
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
            Some(text) => String::from_utf8_lossy(text).into_owned(),
            None => {
                let kind = ffi::lua_typename(raw, ffi::lua_type(raw, -1));
                let kind = std::ffi::CStr::from_ptr(kind).to_string_lossy();
                format!("the script raised a {kind} value as an error")
            }
        };
        ffi::lua_settop(raw, -2);
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_all_digits() {
        for number in [1, -1, 9, 10, 1_234_567_890, -99_999_999_999_999] {
            let mut text = Vec::new();
            append_integer(number, &mut text);
            assert_eq!(String::from_utf8(text).expect("digits"), number.to_string());
        }
    }
}
