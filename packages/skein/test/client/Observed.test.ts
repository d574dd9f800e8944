/** The loggers and spans of clients and pools. */
import { describe, expect, it } from "@effect/vitest"
import * as api from "@opentelemetry/api"
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace"
import { AsyncServer } from "skein"
import { AsyncClient, AsyncClientPool, type Logger, NodeConfig } from "skein/client"

const server = () =>
  new AsyncServer({ name: "shop", version: "1.0.0", logger: { info: () => {}, error: () => {} } })
    .tool("greet", {}, (_, { log }) => {
      log.info("greeting")
      return "hello"
    })

/** A logger that remembers the messages of each level. */
const recording = () => {
  const lines: Array<string> = []
  const logger: Logger = {
    info: (message) => lines.push(`info ${message}`),
    warn: (message) => lines.push(`warn ${message}`),
    error: (message) => lines.push(`error ${message}`)
  }
  return { lines, logger }
}

/** A tracer that remembers the names of spans. */
const tracing = () => {
  const exporter = new InMemorySpanExporter()
  const tracer = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }).getTracer("test")
  return { names: () => exporter.getFinishedSpans().map(({ name }) => name), telemetry: { api, tracer } }
}

describe("the logger of", () => {
  it("a client receives its warnings", async () => {
    const { lines, logger } = recording()
    const onLog = () => {
      throw new Error("no place")
    }
    const client = await AsyncClient.connect(server().transport(), { logger, onLog })
    await client.callTool("greet")
    await expect.poll(() => lines).toEqual([expect.stringMatching(/^warn onLog has thrown an error/)])
    await client.close()
  })

  it("a pool receives its warnings, if they are severe enough", async () => {
    const { lines, logger } = recording()
    const config = NodeConfig.object({ mcpServers: { bad: {} } })
    const pool = await AsyncClientPool.fromConfig(config, { logger })
    expect(lines).toEqual([expect.stringMatching(/^warn The server "bad"/)])
    await pool.close()
    const quiet = await AsyncClientPool.fromConfig(config, { logger, level: "error" })
    expect(lines).toHaveLength(1)
    await quiet.close()
  })
})

describe("the telemetry of", () => {
  it("a client makes a span for each request", async () => {
    const { names, telemetry } = tracing()
    const client = await AsyncClient.connect(server().transport(), { telemetry })
    await client.callTool("greet")
    await client.close()
    expect(names()).toContain("tools/call greet")
  })

  it("a pool makes a span for each request of each server", async () => {
    const { names, telemetry } = tracing()
    const pool = await AsyncClientPool.make({ one: { transport: server().transport() } }, { telemetry })
    await (await pool.client("one")).callTool("greet")
    await pool.add("two", { transport: server().transport() })
    await (await pool.client("two")).callTool("greet")
    await pool.close()
    expect(names().filter((name) => name === "tools/call greet")).toHaveLength(2)
  })
})
