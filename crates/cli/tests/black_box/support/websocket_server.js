// An echo on ws, for the tests of brunt. It writes what it counts to a file.
const fs = require("fs");
const { WebSocketServer } = require("/usr/share/nodejs/ws");

let count = 0;
const codes = {};
const [host, port, file] = process.argv.slice(2);
new WebSocketServer({ host, port: Number(port) }).on("connection", (socket) => {
    socket.on("message", (data, isBinary) => {
        count += 1;
        socket.send(data, { binary: isBinary });
    });
    socket.on("error", () => {});
    socket.on("close", (code) => {
        codes[code] = (codes[code] ?? 0) + 1;
        fs.writeFileSync(file + ".new", JSON.stringify({ count, codes }));
        fs.renameSync(file + ".new", file);
    });
});
