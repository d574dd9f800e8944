/**
 * `npm run fleet -- up`: a PostgreSQL server from npm, three nodes of the tea house that share their sessions and tasks in
 * it, a load balancer, clients that call tools all the time, and a page that shows which node answers what.
 *
 * While it runs, `kill`, `roll` and `join` change the nodes from another shell, and print how many calls failed meanwhile.
 */
import { randomBytes } from "node:crypto"
import { readFile } from "node:fs/promises"
import { createServer, type ServerResponse } from "node:http"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { startPostgres, unavailable } from "../../packages/sql/test/postgres.ts"
import { commandLine, portOf, usageError } from "../commandLine.ts"
import { startClients } from "./clients.ts"
import { Nodes } from "./nodes.ts"

const usage = "npm run fleet -- up [--nodes <number>] [--clients <number>] | kill | roll | join  [--port <port>]"
const { positionals: [command = "up", ...more], values } = commandLine(usage, {
  allowPositionals: true,
  options: {
    port: { type: "string", default: "3100" },
    nodes: { type: "string", default: "3" },
    clients: { type: "string", default: "20" }
  }
})
const changes = ["kill", "roll", "join"] as const
const isChange = (name: string): name is typeof changes[number] => changes.includes(name as never)
const port = portOf(usage, values.port)
if (more.length > 0) usageError(usage, `unexpected: ${more.join(" ")}`)

const numberOf = (name: "nodes" | "clients", most: number): number => {
  const text = values[name]
  return /^\d+$/.test(text) && Number(text) <= most
    ? Number(text)
    : usageError(usage, `--${name} is a number from 0 to ${most}, not ${JSON.stringify(text)}`)
}

/** Asks the process of `up` for a change, and prints its report. */
const ask = async (change: string): Promise<void> => {
  const answer = await fetch(`http://127.0.0.1:${port}/fleet/${change}`, { method: "POST" }).catch(() => undefined)
  if (answer === undefined) {
    console.error(`Nothing listens on port ${port}. Start the fleet in another shell: npm run fleet -- up`)
    process.exitCode = 1
    return
  }
  console.log(await answer.text())
  if (!answer.ok) process.exitCode = 1
}

const json = (response: ServerResponse, value: unknown): void =>
  void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value))

/** Starts everything, until a signal ends the process. */
const up = async (count: number, clientCount: number): Promise<void> => {
  if (unavailable !== undefined) {
    console.error(unavailable)
    process.exit(1)
  }
  const page = await readFile(join(import.meta.dirname, "page.html"))
  console.log("Starting PostgreSQL and the nodes …")
  const database = await startPostgres()
  const nodes = new Nodes({
    FLEET_DATABASE: await database.createDatabase(),
    // Any node continues a question of another one.
    SKEIN_STATE_KEYS: randomBytes(32).toString("base64")
  })
  const { balancer } = nodes
  const running: { clients?: ReturnType<typeof startClients>; changing?: string | undefined } = {}

  /** Makes a change, and reports the calls meanwhile. */
  const change = async (name: typeof changes[number]): Promise<string> => {
    running.changing = name
    try {
      const { calls, failed } = { ...running.clients!.counts }
      const start = performance.now()
      const done = name === "join" ? `Started ${await nodes.join()}.` : await nodes[name]()
      // Calls that run now may still fail.
      await sleep(2_000)
      const seconds = Math.round((performance.now() - start) / 1_000)
      const { counts } = running.clients!
      const failures = counts.failed - failed
      const reasons = failures === 0 ? [] : counts.failures.slice(-failures).map((text) => `\n  ${text}`)
      return `${done} ${counts.calls - calls} calls in ${seconds} s, ${failures} failed.${reasons.join("")}`
    } finally {
      running.changing = undefined
    }
  }

  const server = createServer((request, response) => {
    const { method, url } = request
    if (url === "/") return void response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(page)
    if (url === "/fleet") {
      return json(response, {
        nodes: balancer.targets,
        answers: balancer.answers,
        clients: clientCount,
        ...running.clients?.counts,
        changing: running.changing
      })
    }
    if (url === "/mcp") return void balancer.handle(request, response)
    const name = url!.replace("/fleet/", "")
    if (!isChange(name)) return void response.writeHead(404).end()
    // A page of another origin must not change it.
    if (method !== "POST" || request.headers.origin !== undefined) return void response.writeHead(403).end()
    if (running.changing !== undefined || running.clients === undefined) {
      return void response.writeHead(409).end(`Wait: ${running.changing ?? "the start"} is in progress.`)
    }
    change(name).then(
      (report) => response.end(report),
      (error: unknown) => response.writeHead(500).end(`It failed: ${error instanceof Error ? error.message : error}`)
    )
  })
  // A change takes a while.
  server.requestTimeout = 0
  server.once("error", ({ message }) => {
    console.error(`Cannot start the fleet: ${message}`)
    process.exit(1)
  })
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
  const { port: own } = server.address() as { readonly port: number }
  const origin = `http://127.0.0.1:${own}`

  let isEnding = false
  const end = async () => {
    if (isEnding) process.exit(1)
    isEnding = true
    await running.clients?.stop()
    server.closeAllConnections()
    server.close()
    await nodes.close()
    await database.stop()
    process.exit()
  }
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => void end())

  await Promise.all(Array.from({ length: count }, () => nodes.join()))
  running.clients = startClients(`${origin}/mcp`, clientCount)
  const option = own === 3100 ? "" : ` --port ${own}`
  console.log(`
The fleet is ready: ${origin}/mcp (Ctrl-C stops it)
  Which node answers what: ${origin}/
  ${count} nodes, ${clientCount} clients that call tools all the time. From another shell:
  Kill a node:             npm run -s fleet -- kill${option}
  Replace all of them:     npm run -s fleet -- roll${option}
  Start one more:          npm run -s fleet -- join${option}
  Call a tool:             npm run -s call -- ${origin}/mcp greet name=Ada`)
}

if (isChange(command)) await ask(command)
else if (command === "up") await up(numberOf("nodes", 9), numberOf("clients", 200))
else usageError(usage, `the command is up, kill, roll or join, not ${command}`)
