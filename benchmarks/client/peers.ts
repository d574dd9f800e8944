/**
 * The clients under test, built in two forms: as plain JavaScript that imports its packages from `node_modules`, and as
 * one bundled file.
 */
import { build } from "esbuild"
import { mkdirSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { join } from "node:path"
import { bundle } from "../../scripts/bundle.ts"
import { type Form, programName } from "../stdio/peers.ts"
import type { Era } from "../stdio/messages.ts"

export interface Peer {
  readonly name: string
  readonly label: string
  readonly eras: ReadonlyArray<Era>
  /** Whether it validates structured results. */
  readonly validates: boolean
  /** Whether it caches listings for the time that the server allows. */
  readonly caches: boolean
  /** Runs from Skein's sources instead of its built packages. */
  readonly source?: boolean
}

const both: ReadonlyArray<Era> = ["session", "request"]

/** All peers, the reference first. */
export const all: ReadonlyArray<Peer> = [
  { name: "bare", label: "bare node:http", eras: both, validates: false, caches: false },
  { name: "skein-node", label: "Skein, NodeHttp", eras: both, validates: true, caches: true },
  { name: "skein-fetch", label: "Skein, Http (fetch)", eras: both, validates: true, caches: true },
  { name: "sdk-v1", label: "SDK v1 1.32.2", eras: ["session"], validates: true, caches: false },
  { name: "sdk-v2", label: "SDK v2 2.4.0", eras: both, validates: true, caches: true },
  { name: "effect-ai", label: "effect/ai 4.1", eras: both, validates: true, caches: false }
]

const here = fileURLToPath(new URL(".", import.meta.url))
const out = join(here, "..", "dist", "client")

/** The programs of a peer: the process that runs operations, and the program whose start is measured. */
type Role = "driver" | "start"

const fileOf = (peer: Peer, role: Role, form: Form): string => join(out, form, `${role}-${peer.name}.mjs`)

const command = (peer: Peer, file: string, args: ReadonlyArray<string>): ReadonlyArray<string> => [
  process.execPath,
  ...(peer.source === true ? ["--conditions=@skein/source"] : []),
  file,
  ...args
]

export const serverFile = join(out, "server.mjs")

/**
 * The command of the process that runs operations. Without `--no-memory-reducer`, V8 shrinks the heap of a process
 * while the others run, and its next operations are slower. Then the order of the peers would change the result.
 */
export const driverOf = (peer: Peer): ReadonlyArray<string> => {
  const [node, ...rest] = command(peer, fileOf(peer, "driver", "node_modules"), [])
  return [node!, "--expose-gc", "--no-memory-reducer", ...rest]
}

/** The command of the program whose start is measured. */
export const startOf = (peer: Peer, form: Form, args: ReadonlyArray<string>): ReadonlyArray<string> =>
  command(peer, fileOf(peer, "start", form), args)

/** Writes the entry file of a program, which combines a client with a role. */
const entryOf = (peer: Peer, role: Role): string => {
  const file = join(out, "entries", `${role}-${peer.name}.ts`)
  const run = role === "driver" ? "serve" : "start"
  writeFileSync(
    file,
    [
      `import { ${run} } from "${join(here, `${role}.ts`)}"`,
      `import { connect } from "${join(here, "peers", `${programName(peer.name)}.ts`)}"`,
      role === "start" ? `await ${run}(connect)` : `${run}(connect)`,
      ""
    ].join("\n")
  )
  return file
}

/**
 * Builds all peers. With `node_modules`, Skein is used from the built `dist` of its packages, as an installed package
 * would be. The bundled file is the output of `npm run bundle`.
 */
export const prepare = async (peers: ReadonlyArray<Peer>): Promise<void> => {
  mkdirSync(join(out, "entries"), { recursive: true })
  const common = {
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    target: "node22",
    logLevel: "warning",
    outExtension: { ".js": ".mjs" }
  } as const
  await build({
    ...common,
    entryPoints: peers.flatMap((peer) => [entryOf(peer, "driver"), entryOf(peer, "start")]),
    outdir: join(out, "node_modules")
  })
  await build({ ...common, entryPoints: [join(here, "server.ts")], outdir: out })
  for (const peer of peers) {
    await bundle({ entry: entryOf(peer, "start"), outfile: fileOf(peer, "start", "bundled") })
  }
}
