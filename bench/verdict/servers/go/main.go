// A small Go server with one handler: `server HANDLER PORT`. What it asks PostgreSQL goes to
// DATABASE.
package main

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"log"
	"math/rand"
	"net/http"
	"os"
	"time"

	_ "github.com/lib/pq"
)

const (
	rows            = 10_000
	hashes          = 5_000
	semaphoreSlots  = 4
	semaphoreHold   = 5 * time.Millisecond
	exponentialMean = 20 * time.Millisecond
	shortDelay      = 5 * time.Millisecond
	longDelay       = 80 * time.Millisecond
	longShare       = 0.1
	lookupPool      = 16
	slowQueryPool   = 4
)

var hundredBytes = bytes.Repeat([]byte("x"), 100)

// Answers at once.
func hello(response http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(response, "Hello, world!")
}

// Answers at once, with 100 bytes.
func hundred(response http.ResponseWriter, _ *http.Request) {
	response.Write(hundredBytes)
}

// Hashes for about half a millisecond; requests do so on all CPUs at once.
func compute(response http.ResponseWriter, _ *http.Request) {
	digest := sha256.Sum256([]byte("brunt"))
	for count := 0; count < hashes; count++ {
		digest = sha256.Sum256(digest[:])
	}
	fmt.Fprintf(response, "%x\n", digest)
}

// At most four requests at a time, each of which waits for something.
func semaphore() http.HandlerFunc {
	slots := make(chan struct{}, semaphoreSlots)
	return func(response http.ResponseWriter, request *http.Request) {
		slots <- struct{}{}
		time.Sleep(semaphoreHold)
		<-slots
		hello(response, request)
	}
}

// Waits for an exponentially distributed time.
func exponential(response http.ResponseWriter, request *http.Request) {
	time.Sleep(time.Duration(rand.ExpFloat64() * float64(exponentialMean)))
	hello(response, request)
}

// Waits for a short time mostly, and for a long one now and then, as beside a cache.
func twoDelays(response http.ResponseWriter, request *http.Request) {
	delay := shortDelay
	if rand.Float64() < longShare {
		delay = longDelay
	}
	time.Sleep(delay)
	hello(response, request)
}

// Asks the database, over a pool of so many connections.
func query(text string, connections int) http.HandlerFunc {
	database, err := sql.Open("postgres", os.Getenv("DATABASE"))
	if err != nil {
		log.Fatal(err)
	}
	database.SetMaxOpenConns(connections)
	database.SetMaxIdleConns(connections)
	return func(response http.ResponseWriter, request *http.Request) {
		var name string
		row := database.QueryRowContext(request.Context(), text, 1+rand.Intn(rows))
		if err := row.Scan(&name); err != nil {
			http.Error(response, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(response, name)
	}
}

func handler(name string) http.Handler {
	switch name {
	case "hello":
		return http.HandlerFunc(hello)
	case "hundred":
		return http.HandlerFunc(hundred)
	case "compute":
		return http.HandlerFunc(compute)
	case "semaphore":
		return semaphore()
	case "exponential":
		return http.HandlerFunc(exponential)
	case "two-delays":
		return http.HandlerFunc(twoDelays)
	case "lookup":
		return query("SELECT name FROM items WHERE id = $1", lookupPool)
	case "slow-query":
		// The statement takes 2 to 12 ms, nearly all of them asleep.
		return query(
			"SELECT name FROM items, pg_sleep(0.002 + random() * 0.01) WHERE id = $1",
			slowQueryPool,
		)
	}
	log.Fatalf("no handler %q", name)
	return nil
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: server HANDLER PORT")
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[2], handler(os.Args[1])))
}
