// Uses the client that oapi-codegen generates: submits a job of each kind, follows it, and reads its results.
//
// Usage: JOBGATE_URL=http://127.0.0.1:8080 go run ./oapi-codegen MANIFESTS LABEL_SELECTOR
package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"jobgate.example/clients/oapi-codegen/jobgate"
)

var (
	namespace = cmp.Or(os.Getenv("JOBGATE_NAMESPACE"), "default")
	ended     = []jobgate.JobPhase{"Succeeded", "Failed", "TimedOut", "Cancelled"}
)

type program struct {
	*jobgate.ClientWithResponses
	directory string
}

func newClient() (*jobgate.ClientWithResponses, error) {
	token := cmp.Or(os.Getenv("JOBGATE_TOKEN"), "none") // `jobgate dev` needs no token
	return jobgate.NewClientWithResponses(os.Getenv("JOBGATE_URL"),
		jobgate.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
			request.Header.Set("Authorization", "Bearer "+token)
			return nil
		}))
}

// unexpected returns an answer without the expected data as an error.
func unexpected(status string, body []byte) error {
	return fmt.Errorf("%s: %s", status, body)
}

// readManifest decodes a manifest of any type.
func readManifest[T any](p program, name string) (manifest T, err error) {
	data, err := os.ReadFile(filepath.Join(p.directory, name+".json"))
	if err != nil {
		return manifest, err
	}
	return manifest, json.Unmarshal(data, &manifest)
}

func (p program) submit(ctx context.Context, manifest jobgate.JobManifest, key string) (*jobgate.Job, error) {
	params := &jobgate.SubmitJobParams{IdempotencyKey: &key}
	answer, err := p.SubmitJobWithResponse(ctx, namespace, params, manifest)
	if err != nil {
		return nil, err
	}
	if answer.JSON201 == nil {
		return nil, unexpected(answer.Status(), answer.Body)
	}
	return answer.JSON201, nil
}

// submitAgain repeats a request, for example after a timeout. The key prevents a second job.
func (p program) submitAgain(ctx context.Context, manifest jobgate.JobManifest, key string) (*jobgate.Job, error) {
	params := &jobgate.SubmitJobParams{IdempotencyKey: &key}
	answer, err := p.SubmitJobWithResponse(ctx, namespace, params, manifest)
	if err != nil {
		return nil, err
	}
	job := cmp.Or(answer.JSON201, answer.JSON200)
	if job == nil || answer.HTTPResponse.Header.Get("Idempotency-Replayed") != "true" {
		return nil, unexpected(answer.Status(), answer.Body)
	}
	return job, nil
}

// follow waits until the job has ended. Each request returns at the next change, or with 304 after 30 seconds.
func (p program) follow(ctx context.Context, name string) (*jobgate.JobStatus, error) {
	wait := "wait=30"
	params := &jobgate.GetJobStatusParams{Prefer: &wait}
	for {
		answer, err := p.GetJobStatusWithResponse(ctx, namespace, name, params)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode() == http.StatusNotModified {
			continue
		}
		if answer.JSON200 == nil {
			return nil, unexpected(answer.Status(), answer.Body)
		}
		if slices.Contains(ended, answer.JSON200.Status.Phase) {
			return answer.JSON200, nil
		}
		etag := answer.HTTPResponse.Header.Get("ETag")
		params.IfNoneMatch = &etag
	}
}

// watch returns the phases of a job after a position of the feed, until the job has ended. The SDK itself does not
// decode server-sent events.
func (p program) watch(ctx context.Context, name, position string) (phases []jobgate.JobPhase, err error) {
	answer, err := p.WatchJob(ctx, namespace, name, &jobgate.WatchJobParams{LastEventID: &position})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	event := ""
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 16<<20) // the status of a large job is a long line
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		if field == "event" {
			event = value
		} else if field == "data" && event == "job" {
			var change jobgate.WatchEvent
			if err := json.Unmarshal([]byte(value), &change); err != nil {
				return nil, err
			}
			phases = append(phases, change.Object.Status.Phase)
			if slices.Contains(ended, change.Object.Status.Phase) {
				return phases, nil
			}
		}
	}
	return nil, cmp.Or(lines.Err(), errors.New("the watch ended before the job: "+answer.Status))
}

// errorsOf submits a manifest that is not valid, and returns the errors of the answer.
func (p program) errorsOf(ctx context.Context, manifest jobgate.JobManifest) (*jobgate.Problem, error) {
	answer, err := p.SubmitJobWithResponse(ctx, namespace, nil, manifest)
	if err != nil {
		return nil, err
	}
	refused := answer.ApplicationproblemJSON422
	if refused == nil {
		return nil, unexpected(answer.Status(), answer.Body)
	}
	for _, field := range fieldErrors(refused) {
		log.Printf("%s: %s", field.Pointer, field.Detail)
	}
	return refused, nil
}

func fieldErrors(refused *jobgate.Problem) []jobgate.FieldError {
	if refused.Errors == nil {
		return nil
	}
	return *refused.Errors
}

func (p program) pages(ctx context.Context, selector string) (pages [][]jobgate.Job, err error) {
	size := int64(2)
	params := &jobgate.ListNamespaceJobsParams{LabelSelector: &selector, PageSize: &size}
	for {
		answer, err := p.ListNamespaceJobsWithResponse(ctx, namespace, params)
		if err != nil {
			return nil, err
		}
		if answer.JSON200 == nil {
			return nil, unexpected(answer.Status(), answer.Body)
		}
		page, err := answer.JSON200.AsJobPage()
		if err != nil {
			return nil, err
		}
		pages = append(pages, page.Items)
		if page.NextPageToken == nil {
			return pages, nil
		}
		params.PageToken = page.NextPageToken
	}
}

// feedPosition returns the current position of the feed. A watch from this position misses no later change.
func (p program) feedPosition(ctx context.Context) (string, error) {
	size := int64(1)
	answer, err := p.ListNamespaceJobs(ctx, namespace, &jobgate.ListNamespaceJobsParams{PageSize: &size})
	if err != nil {
		return "", err
	}
	return answer.Header.Get("Jobgate-Feed-Position"), answer.Body.Close()
}

// cacheSamples submits a SampleSet and a SampleJob, then deletes both.
func (p program) cacheSamples(ctx context.Context) (map[string]string, error) {
	set, err := readManifest[jobgate.SampleSetManifest](p, "sample-set")
	if err != nil {
		return nil, err
	}
	job, err := readManifest[jobgate.SampleJobManifest](p, "sample-job")
	if err != nil {
		return nil, err
	}
	createdSet, err := p.SubmitSampleSetWithResponse(ctx, namespace, nil, set)
	if err != nil {
		return nil, err
	}
	if createdSet.JSON201 == nil {
		return nil, unexpected(createdSet.Status(), createdSet.Body)
	}
	createdJob, err := p.SubmitSampleJobWithResponse(ctx, namespace, nil, job)
	if err != nil {
		return nil, err
	}
	if createdJob.JSON201 == nil {
		return nil, unexpected(createdJob.Status(), createdJob.Body)
	}
	uids := map[string]string{
		"SampleSet": createdSet.JSON201.Uid.String(),
		"SampleJob": createdJob.JSON201.Uid.String(),
	}
	err = repeat(func() (*http.Response, error) {
		return p.DeleteSampleJob(ctx, namespace, createdJob.JSON201.Name, nil)
	})
	if err != nil {
		return nil, err
	}
	return uids, repeat(func() (*http.Response, error) {
		return p.DeleteSampleSet(ctx, namespace, createdSet.JSON201.Name, nil)
	})
}

// repeat sends a deletion again while the answer is 202, that is until the cluster has none of its objects.
func repeat(request func() (*http.Response, error)) error {
	for {
		answer, err := request()
		if err != nil {
			return err
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusAccepted {
			return err
		}
		time.Sleep(time.Second / 2)
	}
}

// read returns the replicas, the history and a log of a job.
func (p program) read(ctx context.Context, name string) (map[string]any, error) {
	replicas, err := p.ListJobReplicasWithResponse(ctx, namespace, name, nil)
	if err != nil {
		return nil, err
	}
	history, err := p.ListJobHistoryWithResponse(ctx, namespace, name, nil)
	if err != nil {
		return nil, err
	}
	if replicas.JSON200 == nil || history.JSON200 == nil {
		return nil, unexpected(replicas.Status(), history.Body)
	}
	task, rank := "worker", int32(0)
	text, err := p.ReadJobLogWithResponse(ctx, namespace, name, &jobgate.ReadJobLogParams{Task: &task, Rank: &rank})
	if err != nil {
		return nil, err
	}
	report := map[string]any{"log": string(text.Body)}
	var lines, entries []string
	for _, replica := range replicas.JSON200.Items {
		lines = append(lines, fmt.Sprintf("%s %s %d", replica.Name, replica.Phase, *replica.ExitCode))
	}
	for _, entry := range history.JSON200.Items {
		entries = append(entries, fmt.Sprintf("%s %s", entry.Phase, entry.Reason))
	}
	report["replicas"], report["history"] = lines, entries
	return report, nil
}

// runJobs submits a job of each kind and waits for their ends. It returns the name and the key of the GenericJob.
func (p program) runJobs(ctx context.Context, report map[string]any) (name, key string, err error) {
	position, err := p.feedPosition(ctx)
	if err != nil {
		return "", "", err
	}
	names, uids := map[string]string{}, map[jobgate.JobKind]string{}
	key = rand.Text()
	for _, file := range []string{"generic-job", "mx-job", "di-job", "training-job"} {
		manifest, err := readManifest[jobgate.JobManifest](p, file)
		if err != nil {
			return "", "", err
		}
		job, err := p.submit(ctx, manifest, file+"-"+key)
		if err != nil {
			return "", "", err
		}
		names[file], uids[job.Kind] = job.Name, job.Uid.String()
	}
	watched, err := p.watch(ctx, names["training-job"], position)
	if err != nil {
		return "", "", err
	}
	phases := map[jobgate.JobKind]jobgate.JobPhase{}
	for _, name := range names {
		job, err := p.follow(ctx, name)
		if err != nil {
			return "", "", err
		}
		phases[job.Kind] = job.Status.Phase
	}
	report["jobs"], report["phases"], report["watched"] = uids, phases, watched
	return names["generic-job"], "generic-job-" + key, nil
}

func (p program) run(ctx context.Context, selector string) (map[string]any, error) {
	report := map[string]any{}
	name, key, err := p.runJobs(ctx, report)
	if err != nil {
		return nil, err
	}
	details, err := p.read(ctx, name)
	if err != nil {
		return nil, err
	}
	for part, value := range details {
		report[part] = value
	}
	invalid, err := readManifest[jobgate.JobManifest](p, "invalid")
	if err != nil {
		return nil, err
	}
	refused, err := p.errorsOf(ctx, invalid)
	if err != nil {
		return nil, err
	}
	var pointers []string
	for _, field := range fieldErrors(refused) {
		pointers = append(pointers, field.Pointer)
	}
	report["problem"] = map[string]any{"code": refused.Code, "pointers": pointers}
	generic, err := readManifest[jobgate.JobManifest](p, "generic-job")
	if err != nil {
		return nil, err
	}
	replayed, err := p.submitAgain(ctx, generic, key)
	if err != nil {
		return nil, err
	}
	report["replayed"] = replayed.Uid.String()
	pages, err := p.pages(ctx, selector)
	if err != nil {
		return nil, err
	}
	var listed [][]string
	for _, page := range pages {
		var names []string
		for _, job := range page {
			names = append(names, job.Name)
		}
		listed = append(listed, names)
	}
	report["pages"] = listed
	report["samples"], err = p.cacheSamples(ctx)
	return report, err
}

func main() {
	log.SetFlags(0)
	client, err := newClient()
	if err != nil {
		log.Fatal(err)
	}
	report, err := program{client, os.Args[1]}.run(context.Background(), os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		log.Fatal(err)
	}
}
