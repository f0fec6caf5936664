# Throughput and p99 over what was varied, from scaling.csv, which this makes:
# brunt report scaling.json -o scaling.csv
set datafile separator ","
set datafile missing ""
set terminal pngcairo size 1000,600 noenhanced
set output "scaling.png"
set key top left
set grid
set xlabel system("head -n 1 scaling.csv | cut -d, -f1")
set ylabel "successful replies per second"
set y2label "p99, ms"
set y2tics
set ytics nomirror
set yrange [0:*]
set y2range [0:*]
plot "scaling.csv" using 1:"successes_median_per_s":"successes_min_per_s":"successes_max_per_s" \
         with yerrorlines linecolor rgb "#1f77b4" title "throughput: median, least and most", \
     "" using 1:(column("response_p99_median_ns") / 1e6) axes x1y2 \
         with linespoints linecolor rgb "#d62728" title "p99: median"
