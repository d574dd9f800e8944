/**
 * A fleet of processes on a PostgreSQL server of its own, behind the load balancer of the example. Each node reaches the
 * database and the other nodes through proxies of its own, which can cut and delay.
 */
import { once } from "node:events"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Client } from "pg"
import { Balancer } from "../../../examples/fleet/balancer.ts"
import { type TcpProxy, tcpProxy } from "../../../interop/tcpProxy.ts"
import { type NodeProcess, startNode } from "../../../packages/fleet/test/postgres/nodeProcess.ts"
import { type Postgres, startPostgres, timeLimits } from "../../../packages/sql/test/postgres.ts"
import { freePort } from "../../freePort.ts"

/** After this time without a request the rows of a session expire. */
export const idleTimeout = "60 seconds"

/** Waits until a function returns undefined. Returns what it returned last. */
export const eventually = async (
  check: () => Promise<string | undefined> | string | undefined,
  milliseconds = 60_000
): Promise<string | undefined> => {
  for (const end = performance.now() + milliseconds;;) {
    const found = await check()
    if (found === undefined || performance.now() > end) return found
    await sleep(100)
  }
}

export interface Node {
  readonly name: string
  readonly process: NodeProcess
  /** In front of the database, and in front of the address for other nodes. */
  readonly database: TcpProxy
  readonly address: TcpProxy
}

/** How often a node is started at most, and the milliseconds between. */
const maxStarts = 60
const startPause = 500

/** The most characters of the logs of the nodes that are kept. */
const maxLog = 20_000_000

export class Nodes {
  readonly postgres: Postgres
  readonly balancer = new Balancer()
  /** The nodes that run. */
  readonly running = new Set<Node>()
  /** How many streams by GET have closed. */
  closedStreams = 0
  /** The processes that were killed. */
  readonly killed = new Set<number>()
  /** Whether a node has ended. */
  hasEnded = false
  log = ""
  readonly #url: string
  readonly #folder: string
  readonly #server: Server
  #last = 0

  private constructor(postgres: Postgres, url: string, folder: string) {
    this.postgres = postgres
    this.#url = url
    this.#folder = folder
    this.#server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => this.#handle(request, response))
    // A change of the fleet takes a while.
    this.#server.requestTimeout = 0
    this.#server.listen(0, "127.0.0.1")
  }

  /** Starts the database and nodes. */
  static async open(count: number): Promise<Nodes> {
    const postgres = await startPostgres()
    const nodes = new Nodes(postgres, await postgres.createDatabase(), await mkdtemp(join(tmpdir(), "skein-walk-")))
    await Promise.all(Array.from({ length: count }, () => nodes.join()))
    return nodes
  }

  /** The port of the load balancer. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** How many connections the load balancer has with clients. */
  get connections(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.getConnections((error, count) => error === null ? resolve(count) : reject(error))
    })
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    if (request.method === "GET") response.on("close", () => void this.closedStreams++)
    void this.balancer.handle(request, response)
  }

  get #calls(): string {
    return join(this.#folder, "calls")
  }

  /** The calls that have run, with the process of each. */
  async calls(): Promise<ReadonlyArray<readonly [key: string, pid: number]>> {
    const text = await readFile(this.#calls, "utf8").catch(() => "")
    return text.split("\n").filter((line) => line !== "").map((line) => {
      const [key, pid] = line.split(" ")
      return [key!, Number(pid)]
    })
  }

  /** Runs a statement, not through a proxy. */
  async query<A>(text: string): Promise<ReadonlyArray<A>> {
    const client = new Client({ connectionString: this.#url, ...timeLimits })
    client.on("error", () => {})
    await client.connect()
    try {
      return (await client.query(text)).rows as ReadonlyArray<A>
    } finally {
      await client.end()
    }
  }

  /**
   * Starts a node, and waits until the load balancer sends requests to it. A node that does not find its database ends, and is
   * started again, as a supervisor does.
   */
  async join(): Promise<Node> {
    const name = `node ${++this.#last}`
    const database = await tcpProxy(this.postgres.port, { delayed: "LISTEN" })
    const port = await freePort()
    const advertisedHost = "127.0.0.2"
    const address = await tcpProxy(port, { host: advertisedHost })
    const settings = {
      url: database.proxied(this.#url),
      leaseTimeout: "5 seconds",
      idleTimeout,
      nodeRequests: { port, advertisedHost },
      calls: this.#calls
    } as const
    const onLog = (text: string): void => {
      this.log = (this.log + text.replaceAll(/^(?=.)/gm, `${name}: `)).slice(-maxLog)
    }
    const start = (attempts: number): Promise<NodeProcess> =>
      startNode(settings, onLog).catch((error: unknown) => {
        if (attempts === maxStarts) throw error
        return sleep(startPause).then(() => start(attempts + 1))
      })
    const process = await start(1)
    const node: Node = { name, process, database, address }
    void process.ended.then(() => this.#ended(node))
    await this.balancer.add(name, process.port)
    this.running.add(node)
    return node
  }

  #ended(node: Node): void {
    this.hasEnded = true
    this.running.delete(node)
    this.balancer.remove(node.name)
    void node.database.close()
    void node.address.close()
  }

  /** Ends a node with a signal. Returns how it has ended. */
  async end(node: Node, signal: "SIGTERM" | "SIGKILL"): Promise<number | string> {
    if (signal === "SIGKILL") this.killed.add(node.process.pid)
    node.process.kill(signal)
    return node.process.ended
  }

  /** Replaces each node, one after the other, as a deploy does. */
  async replaceAll(): Promise<void> {
    for (const node of [...this.running]) {
      await this.join()
      await this.end(node, "SIGTERM")
    }
  }

  /** Kills the nodes that are left, and ends the database. */
  async close(): Promise<void> {
    for (const { process } of this.running) process.kill("SIGKILL")
    await Promise.all([...this.running].map(({ process }) => process.ended))
    this.balancer.close()
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, "close")
    await this.postgres.stop()
    await rm(this.#folder, { recursive: true })
  }
}
