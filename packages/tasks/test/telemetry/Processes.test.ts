/** The telemetry that an OTLP collector receives from a front end and its workers, which are processes of their own. */
import { it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as ClientHttp from "@skein/client/NodeHttp"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Telemetry from "@skein/server/Telemetry"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Tasks from "@skein/tasks/Tasks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import { mkdtempSync, rmSync } from "node:fs"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { describePostgres } from "../../../sql/test/describePostgres.ts"
import { Child } from "../crash/child.ts"
import { otlp, tools } from "./brewery.ts"

const traceId = "0af7651916cd43dd8448eb211c80319c"

/** A collector that stores the received spans, and the last value of each metric, by service. */
const startCollector = Effect.acquireRelease(
  Effect.promise(async () => {
    const spans: Array<any> = []
    const metrics = new Map<string, any>()
    const server = http.createServer((request, response) => {
      let text = ""
      request.on("data", (chunk) => (text += chunk))
      request.on("end", () => {
        const body = JSON.parse(text)
        for (const { resource, scopeSpans } of body.resourceSpans ?? []) {
          for (const span of scopeSpans[0].spans) spans.push({ ...span, service: serviceOf(resource) })
        }
        for (const { resource, scopeMetrics } of body.resourceMetrics ?? []) {
          for (const metric of scopeMetrics[0].metrics) metrics.set(`${serviceOf(resource)} ${metric.name}`, metric)
        }
        response.writeHead(200, { "content-type": "application/json" }).end("{}")
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const { port } = server.address() as AddressInfo
    return { server, spans, metrics, url: `http://127.0.0.1:${port}` }
  }),
  ({ server }) =>
    Effect.promise(() => {
      server.closeAllConnections()
      return new Promise<void>((resolve) => server.close(() => resolve()))
    })
)

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-telemetry-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

const attributeOf = (attributes: ReadonlyArray<any>, key: string): unknown =>
  attributes.find((attribute) => attribute.key === key)?.value.stringValue

const serviceOf = ({ attributes }: any) => attributeOf(attributes, "service.name")

/** Repeats a look until it finds something. An exporter sends nothing for a minute after a request of it has failed. */
const eventually = <A, E = never, R = never>(
  name: string,
  look: () => A | undefined,
  before: Effect.Effect<unknown, E, R>
) =>
  Effect.timeoutOrElse(
    Effect.repeat(Effect.andThen(before, Effect.sync(look)), { until: (found) => found !== undefined }),
    { duration: "3 minutes", orElse: () => Effect.die(new Error(`nothing was received: ${name}`)) }
  )

const pause = Effect.sleep(50)

/** The spans of a call and of its task, if all of them were received. */
const findTrace = (spans: ReadonlyArray<any>) =>
  spans.flatMap((run) => {
    if (run.name !== "task brew") return []
    const called = spans.find(({ name, spanId }) => name === "tools/call brew" && spanId === run.links[0]?.spanId)
    const [boil, stove] = ["boil", "stove"].map((each) =>
      spans.find(({ name, traceId }) => name === each && traceId === run.traceId)
    )
    return called && boil && stove ? [{ boil, called, run, stove }] : []
  })[0]

describePostgres("tasks of a front end and its workers", (postgres) => {
  it.live(
    "2026-07-28 · a run in another process is linked to the trace of its call; stalls and takeovers are counted",
    () =>
      Effect.gen(function*() {
        const database = yield* Effect.promise(() => postgres().createDatabase())
        const { metrics, spans, url } = yield* startCollector
        const folder = yield* temporaryFolder
        const startWorker = (name: string, pool: string) =>
          Effect.acquireRelease(
            Effect.promise(async () => {
              const child = new Child("../telemetry/worker.ts", [database, url, name, pool, folder])
              expect(await child.message(), `${child.err}`).toBeDefined()
              return child
            }),
            (child) => Effect.promise(() => child.kill("SIGKILL"))
          )
        yield* startWorker("cook", "default")
        yield* startWorker("neighbor", "other")
        const server = McpServer.layer(
          { name: "front", version: "1.0.0" },
          Telemetry.layer(),
          tools(folder),
          Tasks.layer()
        )
        const front = yield* Layer.build(
          NodeHttp.layer({ port: 0 }).pipe(
            Layer.provide(server),
            Layer.provide(PostgresTasks.layer({ url: database, runTasks: false })),
            Layer.provide(otlp(url, "front"))
          )
        )
        const client = yield* Client.make(ClientHttp.transport({ url: Context.get(front, NodeHttp.Server).url }))
        const call = (name: string) =>
          client.callTool(name).pipe(
            Effect.withParentSpan(Tracer.externalSpan({ traceId, spanId: "b7ad6b7169203331", sampled: true }))
          )

        const received = yield* eventually(
          "spans",
          () => findTrace(spans),
          Effect.andThen(call("brew"), Effect.sleep("1 second"))
        )
        const { boil, called, run, stove } = received!
        expect(called).toMatchObject({ service: "front", traceId })
        expect(run).toMatchObject({ service: "cook", kind: 5, links: [{ traceId, spanId: called.spanId }] })
        expect(run.traceId).not.toBe(traceId)
        expect(attributeOf(run.attributes, "mcp.server.task.run.end")).toBe("completed")
        expect(boil).toMatchObject({ traceId: run.traceId, parentSpanId: run.spanId })
        expect(stove).toMatchObject({ traceId: run.traceId, parentSpanId: boil.spanId })

        const metricOf = (service: string, name: string) =>
          eventually(`${service} ${name}`, () => metrics.get(`${service} mcp.server.task.${name}`), pause)
        // A counter exists with 0 before its first event.
        const countOf = (service: string, name: string) =>
          metrics.get(`${service} mcp.server.task.${name}`)?.sum.dataPoints.find((point: any) => point.asDouble > 0)
        const takenOver = yield* eventually("takeovers", () => countOf("neighbor", "takeovers"), call("stir"))
        expect(attributeOf(takenOver.attributes, "gen_ai.tool.name")).toBe("stir")
        const stall = yield* metricOf("cook", "worker.stall.duration")
        expect(stall.unit).toBe("s")
        expect(stall.histogram.dataPoints[0].sum).toBeGreaterThan(1)
        yield* eventually("lost leases", () => countOf("cook", "worker.lost_leases"), pause)
        expect((yield* metricOf("neighbor", "queue.size")).gauge.dataPoints).not.toEqual([])
      }).pipe(Effect.scoped),
    900_000
  )
})
