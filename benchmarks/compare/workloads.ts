/**
 * The workloads of a comparison. A checkout builds and starts its own programs with its own modules, so that its public
 * API may differ. The commands between these modules must be the same in both checkouts.
 */
import type * as clientPeers from "../client/peers.ts"
import type * as clientProcesses from "../client/processes.ts"
import type * as httpPeers from "../http/peers.ts"
import type * as serverProcess from "../http/serverProcess.ts"
import type * as childProcesses from "../lib/childProcesses.ts"
import type * as stdioConnection from "../stdio/connection.ts"
import type * as stdioPeers from "../stdio/peers.ts"
import type * as taskProcesses from "../tasks/processes.ts"
import { pathToFileURL } from "node:url"
import { join } from "node:path"
import { call, count, list, type Operation } from "../http/requests.ts"
import type { Era } from "../stdio/messages.ts"
import type { Databases } from "../tasks/databases.ts"
import type { Job } from "../client/testClient.ts"
import type { Plan, Version } from "./alternation.ts"
import { openLoad } from "./httpLoad.ts"

/** The modules of the benchmarks of a checkout. */
const load = async (checkout: string) => {
  const module = <A>(path: string): Promise<A> => import(pathToFileURL(join(checkout, "benchmarks", path)).href)
  return {
    processes: await module<typeof childProcesses>("lib/childProcesses.ts"),
    http: {
      ...await module<typeof httpPeers>("http/peers.ts"),
      ...await module<typeof serverProcess>("http/serverProcess.ts")
    },
    stdio: {
      ...await module<typeof stdioPeers>("stdio/peers.ts"),
      ...await module<typeof stdioConnection>("stdio/connection.ts")
    },
    client: {
      ...await module<typeof clientPeers>("client/peers.ts"),
      ...await module<typeof clientProcesses>("client/processes.ts")
    },
    tasks: await module<typeof taskProcesses>("tasks/processes.ts")
  }
}

type Modules = Awaited<ReturnType<typeof load>>

/** A checkout whose programs are built. */
export interface Checkout extends Modules {}

/** Servers and databases that both checkouts use. */
export interface Shared {
  readonly server: clientProcesses.Server
  readonly databases: Databases
}

export interface Workload {
  readonly group: "http" | "stdio" | "client" | "tasks"
  readonly title: string
  readonly plan: Plan
  readonly open: (checkout: Checkout, shared: Shared) => Promise<Version>
}

const named = <A extends { readonly name: string }>(peers: ReadonlyArray<A>, name: string): A => {
  const peer = peers.find((peer) => peer.name === name)
  if (peer === undefined) throw new Error(`the checkout has no peer ${name}`)
  return peer
}

/** Loads the modules of a checkout, and builds its programs, which import its built packages. */
export const prepare = async (path: string): Promise<Checkout> => {
  const checkout = await load(path)
  const isSkein = ({ name }: { readonly name: string }): boolean => name.startsWith("skein")
  await checkout.http.prepare(checkout.http.all.filter(isSkein))
  await checkout.stdio.prepare(checkout.stdio.all.filter(isSkein))
  await checkout.client.prepare(checkout.client.all.filter(isSkein))
  await checkout.tasks.prepare(false)
  return checkout
}

const eras: ReadonlyArray<Era> = ["session", "request"]
const revision = { session: "2025-11-25", request: "2026-07-28" } as const

const http = (title: string, operation: Operation, connections: number, slice: number): ReadonlyArray<Workload> =>
  eras.map((era) => ({
    group: "http",
    title: `server over HTTP, ${title}, ${revision[era]}`,
    plan: { starts: 12, pairs: 50, warmUp: 1_500, slice },
    open: async ({ http: { all, ServerProcess } }) =>
      openLoad(await ServerProcess.start(named(all, "skein"), operation.args), era, operation, connections)
  }))

const stdio: ReadonlyArray<Workload> = eras.map((era) => ({
  group: "stdio",
  title: `server over stdio, tools/call, ${revision[era]}`,
  plan: { starts: 12, pairs: 30, warmUp: 1_500, slice: 40 },
  open: async ({ stdio: { all, Connection, fileOf } }) => {
    const connection = new Connection("Skein", era, fileOf(named(all, "skein"), "node_modules"))
    await connection.open()
    return {
      slice: async (millis) => {
        const { calls, wall } = await connection.burst(32, millis)
        return calls / wall
      },
      close: () => connection.close()
    }
  }
}))

const client = (
  peer: "skein-node" | "skein-fetch",
  title: string,
  job: Job,
  inFlight: number,
  sse: boolean
): ReadonlyArray<Workload> =>
  eras.map((era) => ({
    group: "client",
    title: `client, ${peer === "skein-node" ? "NodeHttp" : "Http"}, ${title}, ${revision[era]}`,
    plan: { starts: 12, pairs: 25, warmUp: 1_500, slice: 40 },
    open: async ({ client: { all, Runner } }, { server }) => {
      const runner = new Runner(named(all, peer))
      await runner.connect(server.url(era, { sse, long: job === "list" }), era, true)
      return {
        slice: async (millis) => {
          const { turns, wall } = await runner.burst(job, inFlight, millis)
          return turns / wall
        },
        close: () => runner.stop()
      }
    }
  }))

const tasks = (store: "memory" | "sqlite" | "postgres"): ReadonlyArray<Workload> =>
  ([["engine", "plain"], ["engine", "five"], ["inMemory", "one"]] as const).map(([through, tool]) => ({
    group: "tasks",
    title: `tasks in ${store}, ${tool === "plain" ? "not durable" : tool === "one" ? "one step" : "five steps"}, ${
      through === "engine" ? "directly" : "through a client"
    }`,
    plan: { starts: 6, pairs: 15, warmUp: 2_000, slice: 150 },
    open: async ({ tasks: { Program } }, { databases }) => {
      const { program } = await Program.startServer(store, await databases.create(store), { listen: true })
      return {
        slice: async (millis) => {
          const burst = await program.burst({ through, tool, inFlight: 64, millis })
          return burst.tasks / burst.wall
        },
        close: () => program.kill()
      }
    }
  }))

export const workloads: ReadonlyArray<Workload> = [
  ...http("tools/call", call, 32, 25),
  ...http("tools/list of 100 tools", list, 32, 25),
  ...http("progress over SSE", count, 8, 60),
  ...stdio,
  ...client("skein-node", "a small result", "greet", 16, false),
  ...client("skein-node", "a validated result over SSE", "report", 16, true),
  ...client("skein-node", "tools/list", "list", 1, false),
  ...client("skein-fetch", "a small result", "greet", 16, false),
  ...tasks("memory"),
  ...tasks("sqlite"),
  ...tasks("postgres")
]
