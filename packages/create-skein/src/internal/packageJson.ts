/**
 * The `package.json` of a created project.
 */
import type { PackageManager, Style, Template } from "./choices.ts"
import { packageManagers } from "./choices.ts"

/**
 * The ranges of the dependencies. They are those of this repository, and a test compares them. The packages of Skein
 * have the version of this package.
 */
export const ranges = {
  effect: "~4.1.0",
  "@effect/platform-node": "~4.1.0",
  zod: "^4.6.7",
  "@effect/vitest": "4.0.5",
  "@types/node": "^24.0.0",
  rolldown: "~1.2.18",
  typescript: "7.0.2",
  vitest: "^5.1.0"
} as const

/** The versions of Node that run TypeScript without a flag. */
export const nodeRange = ">=22.19"

type Dependency = keyof typeof ranges | "@skein/server" | "@skein/client" | "@skein/tasks"

const dependencies = ({ style, template }: Choice): ReadonlyArray<Dependency> => [
  ...template === "client" ? ["@skein/client", "@skein/server"] as const : ["@skein/server"] as const,
  // A peer of the package of tasks. Not every package manager installs peers.
  ...template === "tasks" ? ["@effect/platform-node", "@skein/tasks"] as const : [],
  "effect",
  ...style === "async" ? ["zod"] as const : []
]

const devDependencies = ({ style, template }: Choice): ReadonlyArray<Dependency> => [
  ...style === "effect" ? ["@effect/vitest"] as const : [],
  ...template === "client" ? [] : ["@skein/client"] as const,
  "@types/node",
  "rolldown",
  "typescript",
  "vitest"
]

const withEnv = "node --env-file-if-exists=.env"
// On Linux, Node 22, and Node 24 up to 24.14 at least, cannot watch a program if the file of `--env-file-if-exists` is
// missing (nodejs/node#57040). So the file is created first.
const withExample = "node -e \"fs.cpSync('.env.example','.env',{force:false})\""
const inspector = "npx @modelcontextprotocol/inspector"

const scripts = (template: Template) => ({
  // A watched process writes to stdout, which belongs to the protocol, and a restart ends the connection of the host.
  dev: template === "http" || template === "tasks"
    ? `${withExample} && node --watch --env-file=.env src/main.ts`
    : `${withEnv} src/main.ts`,
  start: `${withEnv} dist/main.cjs`,
  build: "node scripts/build.ts",
  check: "tsc",
  test: "vitest run",
  inspect: {
    stdio: `${inspector} node src/main.ts`,
    http: `${inspector} --transport http --server-url http://127.0.0.1:3000/mcp`,
    tasks: `${inspector} --transport http --server-url http://127.0.0.1:3000/mcp`,
    client: `${inspector} node src/exampleServer.ts`
  }[template]
})

interface Choice {
  readonly template: Template
  readonly style: Style
}

/** What a project is made from. */
export interface Project extends Choice {
  readonly name: string
  readonly packageManager: PackageManager
}

/** Returns the text of the file. `version` is that of this package. */
export const packageJson = (project: Project, version: string): string => {
  const versions = (names: ReadonlyArray<Dependency>): Record<string, string> =>
    Object.fromEntries(
      names.toSorted().map((
        name
      ) => [name, Object.hasOwn(ranges, name) ? ranges[name as keyof typeof ranges] : `^${version}`])
    )
  return `${
    JSON.stringify(
      {
        name: project.name,
        version: "0.1.0",
        private: true,
        type: "module",
        scripts: scripts(project.template),
        dependencies: versions(dependencies(project)),
        devDependencies: versions(devDependencies(project)),
        engines: { node: nodeRange }
      },
      undefined,
      2
    )
  }\n`
}

/** Replaces the commands of npm in a text for people, and in a Dockerfile, by those of another package manager. */
export const withPackageManager = (text: string, name: PackageManager): string => {
  if (name === "npm") return text
  const { installInImage, lockFile, run } = packageManagers[name]
  return text
    .replaceAll("RUN npm install", `RUN ${installInImage}`)
    .replaceAll(/\bnpm run\b/g, run)
    .replaceAll(/\bnpm (install|start|test)\b/g, `${name} $1`)
    .replaceAll("package-lock.json", lockFile)
}
