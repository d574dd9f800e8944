/**
 * The server programs under test, built as plain JavaScript that imports its packages from `node_modules`.
 */
import { build } from "esbuild"
import { fileURLToPath, pathToFileURL } from "node:url"
import { join } from "node:path"
import type { Era } from "../stdio/messages.ts"
import { programName } from "../stdio/peers.ts"

export interface Peer {
  readonly name: string
  readonly label: string
  readonly eras: ReadonlyArray<Era>
  /** The name of the program, if it is not the name of the peer. */
  readonly program?: string
  readonly args?: ReadonlyArray<string>
  /** Arguments that select JSON responses instead of streams, which is faster, for responses with one message. */
  readonly json?: ReadonlyArray<string>
  /** Runs from Skein's sources instead of its built packages. */
  readonly source?: boolean
}

const both: ReadonlyArray<Era> = ["session", "request"]

/** All peers, the reference first. */
export const all: ReadonlyArray<Peer> = [
  { name: "bare", label: "bare node:http", eras: both },
  { name: "skein", label: "Skein", eras: both },
  { name: "skein-package", label: "Skein, package skein", eras: both },
  {
    name: "sdk-v1",
    label: "SDK v1 1.32.2, sessions",
    eras: ["session"],
    program: "sdk-v1",
    args: ["--sessions"],
    json: ["--json"]
  },
  {
    name: "sdk-v1-stateless",
    label: "SDK v1 1.32.2, stateless",
    eras: ["session"],
    program: "sdk-v1",
    json: ["--json"]
  },
  { name: "sdk-v2", label: "SDK v2 2.4.0, one call", eras: both },
  {
    name: "sdk-v2-sessions",
    label: "SDK v2 2.4.0, sessions",
    eras: ["session"],
    program: "sdk-v2",
    args: ["--sessions"],
    json: ["--json"]
  },
  { name: "effect-ai", label: "effect/ai 4.1", eras: both }
]

const here = fileURLToPath(new URL(".", import.meta.url))
const out = join(here, "..", "dist", "http")

const programOf = (peer: Peer): string => programName(peer.program ?? peer.name)

/** The command that runs a peer. */
export const commandOf = (peer: Peer, args: ReadonlyArray<string>): ReadonlyArray<string> => [
  process.execPath,
  "--expose-gc",
  ...(peer.source === true ? ["--conditions=@skein/source"] : []),
  "--import",
  pathToFileURL(join(out, "memoryReporter.mjs")).href,
  join(out, "peers", `${programOf(peer)}.mjs`),
  ...(peer.args ?? []),
  ...args
]

/** Builds all peers. Skein is used from the built `dist` of its packages, as an installed package would be. */
export const prepare = (peers: ReadonlyArray<Peer>): Promise<unknown> =>
  build({
    entryPoints: [
      join(here, "memoryReporter.ts"),
      ...new Set(peers.map((peer) => join(here, "peers", `${programOf(peer)}.ts`)))
    ],
    outbase: here,
    outdir: out,
    platform: "node",
    format: "esm",
    target: "node22",
    logLevel: "warning",
    outExtension: { ".js": ".mjs" }
  })
