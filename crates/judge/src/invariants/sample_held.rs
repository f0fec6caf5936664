//! A sound run of connections that were only kept open, made of one of requests.

use brunt_load::LoadModel;
use brunt_record::{KernelSample, Latencies, Recorder, Run};

use super::sample::{MS, US, WINDOW};

/// Connections of each worker.
pub(crate) const HELD: u32 = 4;

/// The run with nothing on its connections. Of evidence and threads it keeps what it has.
pub(crate) fn held_open(mut run: Run) -> Run {
    run.latencies = Latencies::default();
    run.plan.model = LoadModel::Held {
        connect_per_s: None,
    };
    for worker in &mut run.agents[0].workers {
        let mut recorder = Recorder::new(worker.worker, HELD, HELD);
        for slot in 0..u64::from(HELD) {
            recorder.connected(150 * MS + slot, 200 * US);
        }
        recorder.set_window(WINDOW);
        recorder.held_until_now();
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
    }
    run
}
