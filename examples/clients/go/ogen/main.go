// Uses the client that ogen generates: submits a job of each kind, follows it, and reads its results.
//
// Usage: JOBGATE_URL=http://127.0.0.1:8080 go run ./ogen MANIFESTS LABEL_SELECTOR
package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ogen-go/ogen/ogenerrors"

	"jobgate.example/clients/ogen/jobgate"
)

var (
	url       = cmp.Or(os.Getenv("JOBGATE_URL"), "http://127.0.0.1:8080")
	namespace = cmp.Or(os.Getenv("JOBGATE_NAMESPACE"), "default")
	ended     = []jobgate.JobPhase{"Succeeded", "Failed", "TimedOut", "Cancelled"}
)

type program struct {
	*jobgate.Client
	directory string
}

// tokens sends the token of a user. Only the pods of a job have the token of a job.
type tokens string

func (t tokens) Bearer(context.Context, jobgate.OperationName) (jobgate.Bearer, error) {
	return jobgate.Bearer{Token: string(t)}, nil
}

func (t tokens) JobToken(context.Context, jobgate.OperationName) (jobgate.JobToken, error) {
	return jobgate.JobToken{}, ogenerrors.ErrSkipClientSecurity
}

var token = tokens(cmp.Or(os.Getenv("JOBGATE_TOKEN"), "none")) // `jobgate dev` needs no token

func newClient() (*jobgate.Client, error) {
	return jobgate.NewClient(url, token)
}

// as returns an answer of the expected type, and any other answer as an error.
func as[T any](answer any, err error) (expected T, _ error) {
	if err != nil {
		return expected, err
	}
	expected, ok := answer.(T)
	if !ok {
		return expected, fmt.Errorf("%T: %+v", answer, answer)
	}
	return expected, nil
}

// readManifest decodes a manifest of any type.
func readManifest[T any](p program, name string) (*T, error) {
	manifest := new(T)
	data, err := os.ReadFile(filepath.Join(p.directory, name+".json"))
	if err != nil {
		return nil, err
	}
	return manifest, json.Unmarshal(data, manifest)
}

func (p program) submit(ctx context.Context, manifest *jobgate.JobManifest, key string) (jobgate.Job, error) {
	params := jobgate.SubmitJobParams{Namespace: namespace, IdempotencyKey: jobgate.NewOptString(key)}
	created, err := as[*jobgate.SubmitJobCreatedHeaders](p.SubmitJob(ctx, manifest, params))
	if err != nil {
		return jobgate.Job{}, err
	}
	return created.Response, nil
}

// submitAgain repeats a request, for example after a timeout. The key prevents a second job.
func (p program) submitAgain(ctx context.Context, manifest *jobgate.JobManifest, key string) (jobgate.Job, error) {
	params := jobgate.SubmitJobParams{Namespace: namespace, IdempotencyKey: jobgate.NewOptString(key)}
	answer, err := p.SubmitJob(ctx, manifest, params)
	if err != nil {
		return jobgate.Job{}, err
	}
	// The first answer is repeated with its status.
	if again, ok := answer.(*jobgate.SubmitJobOKHeaders); ok && again.IdempotencyReplayed.Or("") == "true" {
		return again.Response, nil
	}
	created, err := as[*jobgate.SubmitJobCreatedHeaders](answer, nil)
	if err != nil {
		return jobgate.Job{}, err
	}
	return created.Response, nil
}

// follow waits until the job has ended. Each request returns at the next change, or with 304 after 30 seconds.
func (p program) follow(ctx context.Context, name string) (jobgate.JobStatus, error) {
	params := jobgate.GetJobStatusParams{Namespace: namespace, Name: name, Prefer: jobgate.NewOptString("wait=30")}
	for {
		answer, err := p.GetJobStatus(ctx, params)
		if err != nil {
			return jobgate.JobStatus{}, err
		}
		if _, unchanged := answer.(*jobgate.GetJobStatusNotModified); unchanged {
			continue
		}
		job, err := as[*jobgate.JobStatusHeaders](answer, nil)
		if err != nil {
			return jobgate.JobStatus{}, err
		}
		if slices.Contains(ended, job.Response.Status.Phase) {
			return job.Response, nil
		}
		params.IfNoneMatch = job.ETag
	}
}

// watch returns the phases of a job after a position of the feed, until the job has ended. The SDK reads an answer as a
// whole, so the program opens the stream, and decodes the object of each event with the SDK's type.
func (p program) watch(ctx context.Context, name, position string) (phases []jobgate.JobPhase, err error) {
	path := fmt.Sprintf("%s/api/v1/namespaces/%s/jobs/%s/watch", url, namespace, name)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	request.Header.Set("Last-Event-ID", position)
	answer, err := http.DefaultClient.Do(request)
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
			var change struct{ Object jobgate.JobStatus }
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
func (p program) errorsOf(ctx context.Context, manifest *jobgate.JobManifest) (*jobgate.Problem, error) {
	answer, err := p.SubmitJob(ctx, manifest, jobgate.SubmitJobParams{Namespace: namespace})
	refused, err := as[*jobgate.SubmitJobUnprocessableEntity](answer, err)
	if err != nil {
		return nil, err
	}
	for _, field := range refused.Errors {
		log.Printf("%s: %s", field.Pointer, field.Detail)
	}
	return (*jobgate.Problem)(refused), nil
}

func (p program) pages(ctx context.Context, selector string) (pages [][]jobgate.Job, err error) {
	params := jobgate.ListNamespaceJobsParams{
		Namespace:     namespace,
		LabelSelector: jobgate.NewOptString(selector),
		PageSize:      jobgate.NewOptInt64(2),
	}
	for {
		list, err := as[*jobgate.ListNamespaceJobsOKHeaders](p.ListNamespaceJobs(ctx, params))
		if err != nil {
			return nil, err
		}
		page, whole := list.Response.GetJobPage()
		if !whole {
			return nil, errors.New("the page has summaries")
		}
		pages = append(pages, page.Items)
		next, more := page.NextPageToken.Get()
		if !more {
			return pages, nil
		}
		params.PageToken = jobgate.NewOptString(next)
	}
}

// feedPosition returns the current position of the feed. A watch from this position misses no later change.
func (p program) feedPosition(ctx context.Context) (string, error) {
	params := jobgate.ListNamespaceJobsParams{Namespace: namespace, PageSize: jobgate.NewOptInt64(1)}
	list, err := as[*jobgate.ListNamespaceJobsOKHeaders](p.ListNamespaceJobs(ctx, params))
	if err != nil {
		return "", err
	}
	return list.JobgateFeedPosition.Or(""), nil
}

// cacheSamples submits a SampleSet and a SampleJob, then deletes both. The answer to a deletion is Accepted while objects
// remain.
func (p program) cacheSamples(ctx context.Context) (map[string]string, error) {
	set, err := readManifest[jobgate.SampleSetManifest](p, "sample-set")
	if err != nil {
		return nil, err
	}
	job, err := readManifest[jobgate.SampleJobManifest](p, "sample-job")
	if err != nil {
		return nil, err
	}
	createdSet, err := as[*jobgate.SubmitSampleSetCreatedHeaders](
		p.SubmitSampleSet(ctx, set, jobgate.SubmitSampleSetParams{Namespace: namespace}))
	if err != nil {
		return nil, err
	}
	createdJob, err := as[*jobgate.SubmitSampleJobCreatedHeaders](
		p.SubmitSampleJob(ctx, job, jobgate.SubmitSampleJobParams{Namespace: namespace}))
	if err != nil {
		return nil, err
	}
	uids := map[string]string{
		"SampleSet": createdSet.Response.UID.String(),
		"SampleJob": createdJob.Response.UID.String(),
	}
	ofJob := jobgate.DeleteSampleJobParams{Namespace: namespace, Name: createdJob.Response.Name}
	for {
		answer, err := p.DeleteSampleJob(ctx, ofJob)
		if _, accepted := answer.(*jobgate.DeleteSampleJobAccepted); err != nil || !accepted {
			if _, err := as[*jobgate.DeleteSampleJobOK](answer, err); err != nil {
				return nil, err
			}
			break
		}
		time.Sleep(time.Second / 2)
	}
	ofSet := jobgate.DeleteSampleSetParams{Namespace: namespace, Name: createdSet.Response.Name}
	for {
		answer, err := p.DeleteSampleSet(ctx, ofSet)
		if _, accepted := answer.(*jobgate.DeleteSampleSetAccepted); err != nil || !accepted {
			_, err := as[*jobgate.DeleteSampleSetOK](answer, err)
			return uids, err
		}
		time.Sleep(time.Second / 2)
	}
}

// read returns the replicas, the history and a log of a job.
func (p program) read(ctx context.Context, name string) (map[string]any, error) {
	replicas, err := as[*jobgate.ReplicaPage](
		p.ListJobReplicas(ctx, jobgate.ListJobReplicasParams{Namespace: namespace, Name: name}))
	if err != nil {
		return nil, err
	}
	history, err := as[*jobgate.HistoryPage](
		p.ListJobHistory(ctx, jobgate.ListJobHistoryParams{Namespace: namespace, Name: name}))
	if err != nil {
		return nil, err
	}
	params := jobgate.ReadJobLogParams{
		Namespace: namespace,
		Name:      name,
		Task:      jobgate.NewOptString("worker"),
		Rank:      jobgate.NewOptInt32(0),
	}
	answer, err := as[*jobgate.ReadJobLogOKHeaders](p.ReadJobLog(ctx, params))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(answer.Response)
	if err != nil {
		return nil, err
	}
	var lines, entries []string
	for _, replica := range replicas.Items {
		lines = append(lines, fmt.Sprintf("%s %s %d", replica.Name, replica.Phase, replica.ExitCode.Or(-1)))
	}
	for _, entry := range history.Items {
		entries = append(entries, fmt.Sprintf("%s %s", entry.Phase, entry.Reason))
	}
	return map[string]any{"log": string(text), "replicas": lines, "history": entries}, nil
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
		names[file], uids[job.Kind] = job.Name, job.UID.String()
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
	for _, field := range refused.Errors {
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
	report["replayed"] = replayed.UID.String()
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
