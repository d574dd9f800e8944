/**
 * The clients under test, made ready to run: as plain JavaScript that finds its packages in `node_modules`, and as one bundled file.
 */
import { build } from "esbuild"
import { mkdirSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { join } from "node:path"
import { bundle } from "../../scripts/bundle.ts"
import type { Form } from "../stdio/peers.ts"
import type { Era } from "../stdio/wire.ts"

export interface Peer {
  readonly name: string
  readonly label: string
  readonly eras: ReadonlyArray<Era>
  /** Whether it checks structured results. */
  readonly checks: boolean
  /** Whether it keeps listings for as long as the server lets it. */
  readonly caches: boolean
  /** Runs from Skein's sources instead of its built packages. */
  readonly source?: boolean
}

const both: ReadonlyArray<Era> = ["session", "request"]

/** All of them, the yardstick first. */
export const all: ReadonlyArray<Peer> = [
  { name: "bare", label: "bare node:http", eras: both, checks: false, caches: false },
  { name: "skein-node", label: "Skein, NodeHttp", eras: both, checks: true, caches: true },
  { name: "skein-fetch", label: "Skein, Http (fetch)", eras: both, checks: true, caches: true },
  { name: "sdk-v1", label: "SDK v1 1.32.2", eras: ["session"], checks: true, caches: false },
  { name: "sdk-v2", label: "SDK v2 2.4.0", eras: both, checks: true, caches: true },
  { name: "effect-ai", label: "effect/ai 4.1", eras: both, checks: true, caches: false }
]

const here = fileURLToPath(new URL(".", import.meta.url))
const out = join(here, "..", "dist", "client")

/** What a peer is made into: the process that is driven, and the program whose start is timed. */
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
 * The command of the process that is driven. V8 shrinks the heap of a process that idles while the others have their turn, and what
 * it does next is dearer: who came first would look worse.
 */
export const driverOf = (peer: Peer): ReadonlyArray<string> => {
  const [node, ...rest] = command(peer, fileOf(peer, "driver", "node_modules"), [])
  return [node!, "--expose-gc", "--no-memory-reducer", ...rest]
}

/** The command of the program whose start is timed. */
export const startOf = (peer: Peer, form: Form, args: ReadonlyArray<string>): ReadonlyArray<string> =>
  command(peer, fileOf(peer, "start", form), args)

/** A program is a client and what to do with it. */
const entryOf = (peer: Peer, role: Role): string => {
  const file = join(out, "entries", `${role}-${peer.name}.ts`)
  const run = role === "driver" ? "serve" : "start"
  writeFileSync(
    file,
    [
      `import { ${run} } from "${join(here, `${role}.ts`)}"`,
      `import { connect } from "${join(here, "peers", `${peer.name}.ts`)}"`,
      role === "start" ? `await ${run}(connect)` : `${run}(connect)`,
      ""
    ].join("\n")
  )
  return file
}

/** In `node_modules`, Skein is the built `dist` of its packages, as an installed one is. One file is what `npm run bundle` makes. */
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
