//! Close frames (RFC 6455 section 5.5.1): a code, and perhaps a reason.

use super::code::CloseCode;
use super::fault::Fault;
use super::frame::{CONTROL_BYTES_MAX, MaskKey, Opcode, put_frame};

/// Appends a Close frame; of `reason` as much as a control frame can hold. Without a code it holds
/// nothing.
pub fn put_close(out: &mut Vec<u8>, code: Option<CloseCode>, reason: &str, key: Option<MaskKey>) {
    let Some(code) = code else {
        return put_frame(out, Opcode::Close, &[], key);
    };
    let mut end = reason.len().min(CONTROL_BYTES_MAX - 2);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let mut payload = [0; CONTROL_BYTES_MAX];
    payload[..2].copy_from_slice(&code.number().to_be_bytes());
    payload[2..2 + end].copy_from_slice(&reason.as_bytes()[..end]);
    put_frame(out, Opcode::Close, &payload[..2 + end], key);
}

/// The code in the payload of a Close frame.
pub(super) fn read_close(payload: &[u8]) -> Result<Option<CloseCode>, Fault> {
    match payload {
        [] => Ok(None),
        [_] => Err(Fault::CloseLength),
        [high, low, reason @ ..] => {
            let number = u16::from_be_bytes([*high, *low]);
            let code = CloseCode::of(number).ok_or(Fault::CloseCode(number))?;
            std::str::from_utf8(reason).map_err(|_| Fault::CloseReason)?;
            Ok(Some(code))
        }
    }
}
