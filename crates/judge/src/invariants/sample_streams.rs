//! A sound run of streams, made of one of requests: its workers send and receive at an even rate.

use brunt_load::{Spoken, Streams};
use brunt_record::{
    KernelSample, Latencies, Protocol, Recorder, Run, StreamAccount, StreamReading, StreamRecord,
};

use super::sample::{MS, US, WINDOW};

/// Streams of each worker.
const STREAMS: u64 = 4;
/// What a worker moves in 100 ms, each way.
const STEP_BYTES: u64 = 10_000_000;
const STEP_NS: u64 = 100 * MS;

/// The run with streams in place of requests. Of evidence and threads it keeps what it has.
pub(crate) fn streamed(mut run: Run) -> Run {
    run.latencies = Latencies::default();
    run.plan.spoken = Spoken::Streams(Streams {
        sends: true,
        receives: true,
        paced_bits_per_s: None,
        is_arranged: false,
    });
    run.agents[0].limits.server_buffer_bytes_max = Some(8_000_000);
    run.agents[0].negotiated.protocol = Protocol::TCP;
    run.agents[0].negotiated.request_bytes = 262_144;
    for worker in &mut run.agents[0].workers {
        let mut recorder = Recorder::new(worker.worker, STREAMS as u32, STREAMS as u32);
        for stream in 0..STREAMS {
            recorder.connected(150 * MS + stream, 200 * US);
        }
        recorder.set_window(WINDOW);
        let steps = (WINDOW.start_ns..WINDOW.end_ns).step_by(STEP_NS as usize);
        for at_ns in steps {
            recorder.handed_over(at_ns, STEP_BYTES);
            recorder.received(at_ns, STEP_BYTES);
        }
        let mut recording = recorder.finish(WINDOW.end_ns);
        run.latencies.merge(&recording.latencies);
        recording.record.count_from(WINDOW.start_ns);
        let record = recording.record;
        worker.tallies = record.tallies;
        worker.population = record.population;
        worker.carried_in = record.carried_in;
        worker.live = record.live;
        worker.series = record.series;
        worker.in_flight_ns = 0;
        worker.reply_bytes_min = None;
        worker.first_service_ns_min = None;
        worker.first_send = Default::default();
        worker.kernel = KernelSample::default();
        worker.streams = Some(stream_record());
    }
    run
}

fn stream_record() -> StreamRecord {
    let steps = WINDOW.length_ns() / STEP_NS;
    let window = StreamAccount {
        bytes_acked: steps * STEP_BYTES,
        bytes_received: steps * STEP_BYTES,
        segments_sent: steps * STEP_BYTES / 1_448,
        segments_received: steps * STEP_BYTES / 1_448,
        busy_ns: STREAMS * WINDOW.length_ns(),
        ..StreamAccount::default()
    };
    StreamRecord {
        window,
        lifetime: window,
        readings: (0..=steps)
            .map(|step| StreamReading {
                at_ns: (step * STEP_NS) as i64,
                bytes_acked: step * STEP_BYTES,
                bytes_received: step * STEP_BYTES,
                segments_retransmitted: 0,
            })
            .collect(),
        bytes_of_streams: vec![2 * steps * STEP_BYTES / STREAMS; STREAMS as usize],
        streams: STREAMS as u32,
        min_rtt_ns: Some(30 * US),
        smoothed_rtt_ns_sum: STREAMS * 50 * US,
        delivery_bytes_per_s: STEP_BYTES * 10,
        ..StreamRecord::default()
    }
}
