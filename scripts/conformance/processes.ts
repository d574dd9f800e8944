/**
 * Servers of several processes: workers of one machine, or nodes of a fleet behind a balancer. Their tasks, and the
 * sessions of a fleet, are in databases of this run.
 */
import { randomBytes } from "node:crypto"
import { startRedis } from "../../packages/fleet/test/startRedis.ts"
import { startPostgres } from "../../packages/sql/test/postgres.ts"
import { startBalancer } from "../balancer.ts"
import { type RunningServer, startFleetNode } from "./serverProcess.ts"

/** The ways in which the processes share their sessions. */
export const kinds = ["workers", "postgres", "redis"] as const

export type Kind = (typeof kinds)[number]

export const isKind = (text: string): text is Kind => kinds.some((kind) => kind === text)

const settled = async (stops: ReadonlyArray<() => Promise<unknown>>): Promise<void> => {
  const results = await Promise.allSettled(stops.map((stop) => stop()))
  for (const result of results) if (result.status === "rejected") throw result.reason
}

/** Starts `examples/everything` in several processes, with one URL. */
export const startProcesses = async (kind: Kind, count: number): Promise<RunningServer> => {
  const postgres = await startPostgres()
  const redis = kind === "redis" ? await startRedis() : undefined
  const stopDatabases = () => settled([postgres.stop, ...redis === undefined ? [] : [redis.stop]])
  // Each process reads the key of the state of requests.
  process.env["SKEIN_STATE_KEYS"] = randomBytes(32).toString("base64")
  const url = await postgres.createDatabase()
  if (kind === "workers") {
    const server = await startFleetNode(url, kind, `${count}`)
    return { url: server.url, stop: () => settled([server.stop, stopDatabases]) }
  }
  const nodes = await Promise.all(Array.from({ length: count }, () => startFleetNode(url, kind, redis?.url ?? url)))
  const balancer = await startBalancer(nodes.map((node) => Number(new URL(node.url).port)))
  return {
    url: `http://127.0.0.1:${balancer.port}/mcp`,
    stop: async () => {
      await balancer.close()
      await settled(nodes.map(({ stop }) => stop))
      await stopDatabases()
    }
  }
}
