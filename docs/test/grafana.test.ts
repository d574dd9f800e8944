/**
 * The dashboards of `docs/grafana`, `programs/metrics.ts`, and the programs of `tasksTelemetry.ts`. Grafana is not
 * installed here: the members that it requires are checked, and each query is compared with what an engine or a server
 * exports.
 */
import { describe, expect, it } from "@effect/vitest"
import { CurrentTask } from "@skein/tasks/CurrentTask"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import { isFinal, type NewTask } from "@skein/tasks/TaskState"
import * as TaskTelemetry from "@skein/tasks/TaskTelemetry"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { createServer } from "node:http"
import { CurrentTaskObserver } from "../../packages/tasks/src/internal/telemetry/taskObserver.ts"
import { metricsOn, tracedTo } from "../programs/tasksTelemetry.ts"
import { read } from "./blocks.ts"
import { call, classic, initialize, started } from "./process.ts"

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number }
  readonly datasource?: { readonly type: string; readonly uid: string }
  readonly targets?: ReadonlyArray<{ readonly refId: string; readonly expr: string; readonly legendFormat: string }>
}

interface Variable {
  readonly name: string
  readonly type: string
  readonly query: string | { readonly query: string }
}

interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly schemaVersion: number
  readonly time: { readonly from: string; readonly to: string }
  readonly templating: { readonly list: ReadonlyArray<Variable> }
  readonly panels: ReadonlyArray<Panel>
}

const queryOf = ({ query }: Variable) => typeof query === "string" ? query : query.query

const task = (tool: string): NewTask => ({
  tool,
  args: {},
  pool: "default",
  owner: null,
  caller: { revision: "2025-11-25", capabilities: {}, info: undefined, principal: undefined },
  ttlMs: null,
  pollIntervalMs: 1000,
  limits: { all: {}, client: {}, tool: {} }
})

/** The metrics of a scrape, with the labels of their samples. */
const parse = (exposition: string): ReadonlyMap<string, ReadonlySet<string>> => {
  const found = new Map<string, Set<string>>()
  for (const line of exposition.split("\n")) {
    const [, name, labels = ""] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? []
    if (name === undefined) continue
    const known = found.get(name) ?? new Set()
    for (const [, label] of labels.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) known.add(label!)
    found.set(name, known)
  }
  return found
}

const fetchMetrics = (port: number) =>
  Effect.promise(async () => parse(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()))

/** The metrics of an engine that has run a task, has a waiting task, and has had each kind of trouble. */
const scraped = Effect.gen(function*() {
  const server = yield* Layer.build(metricsOn(0))
  const { address } = Context.get(server, HttpServer)
  const port = "port" in address ? address.port : 0
  const { runTasks, submit, watch } = yield* TaskEngine
  yield* runTasks(() => ({
    durable: true,
    run: (request) =>
      Effect.as(
        Effect.provideService(
          Step.run("mix", { success: Schema.String }, () => Effect.succeed("")),
          CurrentTask,
          request.task
        ),
        { _tag: "Result", result: { content: [] } }
      )
  }))
  const { id } = yield* submit(task("bake"))
  yield* Stream.runDrain(Stream.takeUntil(watch(id), isFinal))
  yield* submit({ ...task("bake"), pool: "default" })
  const metrics = (yield* CurrentTaskObserver)!.metrics!
  metrics.stalled(2000)
  metrics.leaseLost()
  metrics.outageBegan()
  metrics.takenOver({ tool: "bake", pool: "default" })
  metrics.queue([{ tool: "bake", pool: "default", state: "ready", count: 1, oldestMs: 1, openQuestions: 0 }])
  return yield* fetchMetrics(port)
}).pipe(
  Effect.scoped,
  Effect.provide(
    MemoryTasks.layer().pipe(
      Layer.provideMerge(TaskTelemetry.layer()),
      Layer.provideMerge(Layer.succeed(Metric.MetricRegistry, new Map()))
    )
  )
)

/** The metrics of a server that has answered, failed and refused requests, and has a session with a stream. */
const scrapedServer = Effect.gen(function*() {
  const { url } = yield* started("metrics")
  const port = Number(new URL(url).port)
  const send = (init: RequestInit) => Effect.promise(() => fetch(url, init))
  const read = (response: Response) => Effect.promise(() => response.text())
  yield* Effect.flatMap(send(call("brew")), read)
  yield* Effect.flatMap(send(call("none")), read)
  yield* Effect.flatMap(send({ method: "POST", headers: { accept: "text/plain" } }), read)
  const opened = yield* send(initialize())
  yield* read(opened)
  const session = { "mcp-session-id": opened.headers.get("mcp-session-id")! }
  yield* send(classic({ method: "notifications/initialized" }, session))
  const leaving = new AbortController()
  yield* send({ headers: { ...session, accept: "text/event-stream" }, signal: leaving.signal })
  const second = yield* send(initialize())
  yield* read(second)
  yield* send({ method: "DELETE", headers: { "mcp-session-id": second.headers.get("mcp-session-id")! } })
  const exported = yield* fetchMetrics(port)
  leaving.abort()
  return exported
}).pipe(Effect.scoped)

const dashboards = [
  {
    name: "tasks",
    title: "Skein tasks",
    variables: ["tool", "pool"],
    prefix: "mcp_server_task_",
    scraped
  },
  {
    name: "server",
    title: "Skein server",
    variables: ["job", "tool"],
    prefix: "mcp_server_",
    scraped: scrapedServer
  }
] as const

/** The metrics that a query selects, each with the labels of its selector. */
const selectedBy = (query: string) =>
  Array.from(query.matchAll(/(mcp_server_\w+)(?:\{([^}]*)\})?/g), ([, name = "", selector = ""]) => ({
    name,
    labels: Array.from(selector.matchAll(/(\w+)(?:=~|!=|!~|=)"/g), ([, label]) => label!)
  }))

describe.each(dashboards.map((each) => [each.name, each] as const))("docs/grafana/%s.json", (name, each) => {
  const { prefix, scraped, title, variables: names } = each
  const dashboard = JSON.parse(read(`grafana/${name}.json`)) as Dashboard
  const charts = dashboard.panels.filter(({ type }) => type !== "row")
  const targets = charts.flatMap(({ targets = [], title }) => targets.map((target) => ({ ...target, title })))
  const variables = dashboard.templating.list

  it("has the members that Grafana requires", () => {
    expect(dashboard).toMatchObject({ uid: `skein-${name}`, title, time: { from: "now-6h", to: "now" } })
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(36)
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length)
    expect(variables[0]).toMatchObject({ name: "datasource", type: "datasource", query: "prometheus" })
    expect(variables.slice(1).map(({ name }) => name)).toEqual(names)
    for (const panel of charts) {
      expect(["stat", "timeseries"], `${panel.title}`).toContain(panel.type)
      expect(panel.datasource).toEqual({ type: "prometheus", uid: "${datasource}" })
      expect(panel.targets?.length, `${panel.title}`).toBeGreaterThan(0)
      expect(new Set(panel.targets!.map(({ refId }) => refId)).size).toBe(panel.targets!.length)
    }
  })

  it("places its panels side by side in 24 columns", () => {
    const taken = new Set<string>()
    for (const { gridPos: { h, w, x, y }, title } of dashboard.panels) {
      expect(x + w, `${title}`).toBeLessThanOrEqual(24)
      for (let column = x; column < x + w; column++) {
        for (let row = y; row < y + h; row++) {
          expect(taken.has(`${column} ${row}`), `${title}`).toBe(false)
          taken.add(`${column} ${row}`)
        }
      }
    }
  })

  it.live("queries the metrics and labels that are exported, and every metric", () =>
    Effect.gen(function*() {
      const exported = yield* scraped
      // Prometheus adds the target of a scrape.
      const labelsOf = (name: string) => new Set([...exported.get(name) ?? [], "instance", "job"])
      const used = new Set<string>()
      for (const { expr, legendFormat, title } of targets) {
        const selected = selectedBy(expr)
        expect(selected, `${title}`).not.toEqual([])
        for (const { labels, name } of selected) {
          used.add(name.replace(/_(bucket|sum|count)$/, ""))
          expect([title, name, exported.has(name)]).toEqual([title, name, true])
          for (const label of labels) {
            expect([title, name, [...labelsOf(name)]]).toEqual([title, name, expect.arrayContaining([label])])
          }
        }
        const grouped = Array.from(expr.matchAll(/\bby \(([^)]*)\)/g), ([, labels]) => labels!.split(", ")).flat()
        const shown = Array.from(legendFormat.matchAll(/\{\{(\w+)\}\}/g), ([, label]) => label!)
        for (const label of [...grouped, ...shown]) {
          expect(selected.every(({ name }) => labelsOf(name).has(label)), `${title}: ${label}`).toBe(true)
        }
        for (const label of shown) expect(grouped, `${title}`).toContain(label)
      }
      for (const variable of variables.slice(1)) {
        const [, label] = /, (\w+)\)$/.exec(queryOf(variable)) ?? []
        for (const { name } of selectedBy(queryOf(variable))) expect(labelsOf(name)).toContain(label)
      }
      const families = [...exported.keys()].filter((name) => name.startsWith(prefix))
        .map((name) => name.replace(/_(bucket|sum|count|min|max)$/, ""))
      expect([...new Set(families)].filter((name) => !used.has(name))).toEqual([])
    }))

  it("balances the parentheses and quotes of its queries, and uses known variables", () => {
    const known = new Set(["datasource", ...names, "__rate_interval"])
    for (const { expr, title } of targets) {
      for (const [open, close] of ["()", "{}", "[]"]) {
        expect([title, expr.split(open!).length]).toEqual([title, expr.split(close!).length])
      }
      expect([title, expr.split("\"").length % 2]).toEqual([title, 1])
      for (const [, name] of expr.matchAll(/\$(\w+)/g)) expect([title, known.has(name!)]).toEqual([title, true])
    }
  })
})

describe("programs/tasksTelemetry.ts", () => {
  it.live("exports the spans of tasks to a collector", () =>
    Effect.gen(function*() {
      const received: Array<string> = []
      const collector = createServer((request, response) => {
        request.on("data", (chunk) => void received.push(String(chunk)))
        request.on("end", () => response.end("{}"))
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void collector.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => void collector.close().closeAllConnections())
      )
      const { port } = collector.address() as { readonly port: number }
      yield* Effect.gen(function*() {
        const { runTasks, submit, watch } = yield* TaskEngine
        yield* runTasks(() => ({
          durable: false,
          run: () => Effect.succeed({ _tag: "Result", result: { content: [] } })
        }))
        const { id } = yield* submit(task("bake"))
        yield* Stream.runDrain(Stream.takeUntil(watch(id), isFinal))
      }).pipe(Effect.scoped, Effect.provide(tracedTo(`http://127.0.0.1:${port}`, ":memory:")))
      // The remaining spans are exported when the engine ends.
      expect(received.join("")).toContain("\"name\":\"task bake\"")
      expect(received.join("")).toContain("mcp.server.task.ends")
    }).pipe(Effect.scoped))
})
