import com.fasterxml.jackson.databind.ObjectMapper;
import dev.jobgate.client.ApiClient;
import dev.jobgate.client.ApiException;
import dev.jobgate.client.ApiResponse;
import dev.jobgate.client.api.JobsApi;
import dev.jobgate.client.api.LogsApi;
import dev.jobgate.client.api.SamplejobsApi;
import dev.jobgate.client.api.SamplesetsApi;
import dev.jobgate.client.model.FieldError;
import dev.jobgate.client.model.Job;
import dev.jobgate.client.model.JobManifest;
import dev.jobgate.client.model.JobPage;
import dev.jobgate.client.model.JobPhase;
import dev.jobgate.client.model.JobStatus;
import dev.jobgate.client.model.Problem;
import dev.jobgate.client.model.SampleJob;
import dev.jobgate.client.model.SampleJobManifest;
import dev.jobgate.client.model.SampleSet;
import dev.jobgate.client.model.SampleSetManifest;
import dev.jobgate.client.model.WatchEvent;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * Uses the client that openapi-generator generates: submits a job of each kind, follows it, and reads its results.
 *
 * <p>Usage: JOBGATE_URL=http://127.0.0.1:8080 java WithOpenapiGenerator MANIFESTS LABEL_SELECTOR
 */
public final class WithOpenapiGenerator {
  private static final Set<JobPhase> ENDED =
      EnumSet.of(JobPhase.SUCCEEDED, JobPhase.FAILED, JobPhase.TIMED_OUT, JobPhase.CANCELLED);

  private final String namespace = System.getenv().getOrDefault("JOBGATE_NAMESPACE", "default");
  private final ApiClient client = newClient();
  private final ObjectMapper mapper = client.getObjectMapper();
  private final JobsApi jobs = new JobsApi(client);
  private final LogsApi logs = new LogsApi(client);
  private final SamplesetsApi sampleSets = new SamplesetsApi(client);
  private final SamplejobsApi sampleJobs = new SamplejobsApi(client);
  private final Path directory;

  private WithOpenapiGenerator(Path directory) {
    this.directory = directory;
  }

  private static ApiClient newClient() {
    String token = System.getenv().getOrDefault("JOBGATE_TOKEN", "none"); // `jobgate dev` needs no token
    ApiClient client = new ApiClient();
    client.updateBaseUri(System.getenv("JOBGATE_URL"));
    client.setRequestInterceptor(request -> request.setHeader("Authorization", "Bearer " + token));
    client.setReadTimeout(Duration.ofSeconds(90)); // longer than the longest wait of a long poll
    return client;
  }

  private <T> T manifest(String name, Class<T> type) throws IOException {
    return mapper.readValue(directory.resolve(name + ".json").toFile(), type);
  }

  private Job submit(JobManifest manifest, String key) throws ApiException {
    return jobs.submitJob(namespace, manifest, key);
  }

  /** Repeats a request, for example after a timeout. The key prevents a second job. */
  private Job submitAgain(JobManifest manifest, String key) throws ApiException {
    ApiResponse<Job> answer = jobs.submitJobWithHttpInfo(namespace, manifest, key);
    if (!answer.getHeaders().get("Idempotency-Replayed").contains("true")) {
      throw new IllegalStateException("the key is new");
    }
    return answer.getData();
  }

  /** Waits until the job has ended. Each request returns at the next change, or with 304 after 30 seconds. */
  private JobStatus follow(String name) throws ApiException {
    String etag = null;
    while (true) {
      try {
        ApiResponse<JobStatus> answer = jobs.getJobStatusWithHttpInfo(namespace, name, etag, "wait=30");
        if (ENDED.contains(answer.getData().getStatus().getPhase())) {
          return answer.getData();
        }
        etag = answer.getHeaders().get("ETag").get(0);
      } catch (ApiException unchanged) {
        if (unchanged.getCode() != 304) {
          throw unchanged;
        }
      }
    }
  }

  /** Passes the changes of a job after a position of the feed to a consumer, until the job has ended. */
  private void watch(String name, String position, Consumer<WatchEvent> consumer)
      throws IOException, InterruptedException {
    URI uri = URI.create(client.getBaseUri() + "/api/v1/namespaces/" + namespace + "/jobs/" + name + "/watch");
    HttpRequest.Builder request = HttpRequest.newBuilder(uri).header("Last-Event-ID", position);
    client.getRequestInterceptor().accept(request);
    HttpResponse<Stream<String>> answer =
        client.getHttpClient().send(request.build(), HttpResponse.BodyHandlers.ofLines());
    String event = "";
    try (Stream<String> lines = answer.body()) {
      for (Iterator<String> each = lines.iterator(); each.hasNext(); ) {
        String line = each.next();
        if (line.startsWith("event: ")) {
          event = line.substring("event: ".length());
        } else if (line.startsWith("data: ") && event.equals("job")) {
          WatchEvent change = mapper.readValue(line.substring("data: ".length()), WatchEvent.class);
          consumer.accept(change);
          if (ENDED.contains(change.getObject().getStatus().getPhase())) {
            return;
          }
        }
      }
    }
    throw new IOException("the watch ended before the job: " + answer.statusCode());
  }

  /** Submits a manifest that is not valid, and returns the errors of the answer. */
  private Problem errorsOf(JobManifest manifest) throws ApiException, IOException {
    try {
      Job job = jobs.submitJob(namespace, manifest, null);
      throw new IllegalStateException("the manifest of " + job.getName() + " is valid");
    } catch (ApiException refused) {
      if (refused.getCode() != 422) {
        throw refused;
      }
      Problem problem = mapper.readValue(refused.getResponseBody(), Problem.class);
      for (FieldError error : problem.getErrors()) {
        System.err.println(error.getPointer() + ": " + error.getDetail());
      }
      return problem;
    }
  }

  private List<List<Job>> pages(String selector) throws ApiException {
    List<List<Job>> pages = new ArrayList<>();
    String token = null;
    do {
      JobsApi.APIListNamespaceJobsRequest request =
          JobsApi.APIListNamespaceJobsRequest.newBuilder()
              .namespace(namespace)
              .labelSelector(selector)
              .pageSize(2L)
              .pageToken(token)
              .build();
      JobPage page = jobs.listNamespaceJobs(request).getJobPage();
      pages.add(page.getItems());
      token = page.getNextPageToken();
    } while (token != null);
    return pages;
  }

  /** Returns the current position of the feed. A watch from this position misses no later change. */
  private String feedPosition() throws ApiException {
    return jobs.listNamespaceJobsWithHttpInfo(
            JobsApi.APIListNamespaceJobsRequest.newBuilder().namespace(namespace).pageSize(1L).build())
        .getHeaders()
        .get("Jobgate-Feed-Position")
        .get(0);
  }

  /** Submits a SampleSet and a SampleJob, then deletes both. The answer to a deletion is 202 while objects remain. */
  private Map<String, UUID> cacheSamples() throws ApiException, IOException, InterruptedException {
    SampleSet set = sampleSets.submitSampleSet(namespace, manifest("sample-set", SampleSetManifest.class), null);
    SampleJob job = sampleJobs.submitSampleJob(namespace, manifest("sample-job", SampleJobManifest.class), null);
    while (sampleJobs.deleteSampleJobWithHttpInfo(namespace, job.getName(), null, null).getStatusCode() == 202) {
      Thread.sleep(500);
    }
    while (sampleSets.deleteSampleSetWithHttpInfo(namespace, set.getName(), null, null).getStatusCode() == 202) {
      Thread.sleep(500);
    }
    return Map.of("SampleSet", set.getUid(), "SampleJob", job.getUid());
  }

  /** Submits a job of each kind, waits for their ends, and returns the name of the GenericJob. */
  private String runJobs(String key, Map<String, Object> report)
      throws ApiException, IOException, InterruptedException {
    String position = feedPosition();
    Map<String, Job> submitted = new LinkedHashMap<>();
    for (String file : List.of("generic-job", "mx-job", "di-job", "training-job")) {
      submitted.put(file, submit(manifest(file, JobManifest.class), file + "-" + key));
    }
    List<JobPhase> watched = new ArrayList<>();
    watch(
        submitted.get("training-job").getName(),
        position,
        change -> watched.add(change.getObject().getStatus().getPhase()));
    Map<String, UUID> uids = new LinkedHashMap<>();
    Map<String, JobPhase> phases = new LinkedHashMap<>();
    for (Job job : submitted.values()) {
      uids.put(job.getKind().getValue(), job.getUid());
      phases.put(job.getKind().getValue(), follow(job.getName()).getStatus().getPhase());
    }
    report.put("jobs", uids);
    report.put("phases", phases);
    report.put("watched", watched);
    return submitted.get("generic-job").getName();
  }

  private Map<String, Object> run(String selector) throws ApiException, IOException, InterruptedException {
    Map<String, Object> report = new LinkedHashMap<>();
    String key = UUID.randomUUID().toString();
    String generic = runJobs(key, report);
    List<String> replicas =
        jobs.listJobReplicas(JobsApi.APIListJobReplicasRequest.newBuilder().namespace(namespace).name(generic).build())
            .getItems()
            .stream()
            .map(replica -> replica.getName() + " " + replica.getPhase() + " " + replica.getExitCode())
            .toList();
    List<String> history =
        jobs.listJobHistory(JobsApi.APIListJobHistoryRequest.newBuilder().namespace(namespace).name(generic).build())
            .getItems()
            .stream()
            .map(entry -> entry.getPhase() + " " + entry.getReason())
            .toList();
    report.put("replicas", replicas);
    report.put("history", history);
    report.put(
        "log",
        logs.readJobLog(
            LogsApi.APIReadJobLogRequest.newBuilder()
                .namespace(namespace)
                .name(generic)
                .task("worker")
                .rank(0)
                .build()));
    Problem problem = errorsOf(manifest("invalid", JobManifest.class));
    List<String> pointers = problem.getErrors().stream().map(FieldError::getPointer).toList();
    report.put("problem", Map.of("code", problem.getCode(), "pointers", pointers));
    report.put("replayed", submitAgain(manifest("generic-job", JobManifest.class), "generic-job-" + key).getUid());
    report.put("pages", pages(selector).stream().map(page -> page.stream().map(Job::getName).toList()).toList());
    report.put("samples", cacheSamples());
    return report;
  }

  public static void main(String[] arguments) throws ApiException, IOException, InterruptedException {
    WithOpenapiGenerator program = new WithOpenapiGenerator(Path.of(arguments[0]));
    System.out.println(program.mapper.writeValueAsString(program.run(arguments[1])));
  }
}
