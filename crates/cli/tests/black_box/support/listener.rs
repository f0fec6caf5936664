//! Ports that do not take connections, or not all of them, and peers that serve each connection.

use std::net::{SocketAddr, TcpListener, TcpStream};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};

use super::wait_for;

/// A server for the rest of the process that does this with each connection, in a thread of its
/// own, and then closes it.
pub(crate) fn serve_each(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(socket));
        }
    });
    address
}

/// A bound port of loopback.
#[derive(Debug)]
pub(crate) struct Port {
    socket: OwnedFd,
    pub(crate) address: SocketAddr,
}

impl Port {
    /// A port that is taken, and refuses connections because nobody listens.
    pub(crate) fn refusing() -> Self {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        bind(&socket, &any).expect("a free port");
        let bound = getsockname(&socket).expect("it is bound");
        let address = SocketAddr::try_from(bound).expect("an internet address");
        Self { socket, address }
    }

    /// A port whose queue holds one connection, which is never accepted: the one with which brunt
    /// finds out that somebody is there. Attempts to open further ones get no answer.
    pub(crate) fn full_after_one() -> Self {
        let port = Self::refusing();
        listen(&port.socket, 0).expect("it is bound");
        port
    }

    /// Waits until a connection stands in the queue.
    pub(crate) fn wait_until_full(&self) {
        wait_for("brunt looks whether somebody is there", || {
            let mut waiting = [PollFd::new(&self.socket, PollFlags::IN)];
            let ready = poll(&mut waiting, Some(&Timespec::default())).expect("it is open");
            (ready > 0).then_some(())
        });
    }
}
