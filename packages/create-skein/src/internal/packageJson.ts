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
  vite: "^8.3.8",
  vitest: "^5.1.0"
} as const

/** The versions of Node that run TypeScript without a flag. */
export const nodeRange = ">=22.19"

type Dependency = keyof typeof ranges | "skein" | `@skein/${"cli" | "server" | "client" | "tasks"}`

const dependencies = ({ style, template }: Choice): ReadonlyArray<Dependency> =>
  style === "async" ? ["skein", "zod"] : [
    ...template === "client" ? ["@skein/client", "@skein/server"] as const : ["@skein/server"] as const,
    // A peer of the package of tasks. Not every package manager installs peers.
    ...template === "tasks" ? ["@effect/platform-node", "@skein/tasks"] as const : [],
    "effect"
  ]

const devDependencies = ({ style, template }: Choice): ReadonlyArray<Dependency> => [
  ...style === "async" ? [] : [
    "@effect/vitest",
    "@skein/cli",
    ...template === "client" ? [] : ["@skein/client"] as const
  ] as const,
  "@types/node",
  "rolldown",
  "typescript",
  // A peer of Vitest. Not every package manager installs peers.
  "vite",
  "vitest"
]

const withEnv = "node --env-file-if-exists=.env"
// The file is created first, so that it is watched.
const withExample = "node -e \"fs.cpSync('.env.example','.env',{force:false})\""
const inspector = "npx @modelcontextprotocol/inspector"

// `node --watch` writes to stdout, which belongs to the protocol on stdio, and ends the connection of the host. On Linux it
// also loses a file that an editor replaces, and one with a syntax error.
const watched = `${withExample} && skein dev --restart-only --watch src --watch .env "node --env-file=.env src/main.ts"`

const scripts = (template: Template) => ({
  dev: {
    stdio: `skein dev "${withEnv} src/main.ts"`,
    http: watched,
    tasks: watched,
    client: `${withEnv} src/main.ts`
  }[template],
  start: `${withEnv} dist/main.cjs`,
  build: "skein build --sourcemap src/main.ts",
  check: "tsc",
  // The logs of a server in memory are printed for failed tests only.
  test: "vitest run --silent=passed-only",
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

/** The choices for a project, with its name and its package manager. */
export interface Project extends Choice {
  readonly name: string
  readonly packageManager: PackageManager
}

/**
 * The members of a package that `npx` starts. The bundle contains all dependencies, so they are needed for development
 * only, and npx downloads one file. A project on stdio is such a package; the others are deployed, and private.
 */
const publishing = ({ packageManager }: Project) => {
  const { run } = packageManagers[packageManager]
  return {
    bin: "dist/main.cjs",
    files: ["dist/main.cjs"],
    // A package with a scope is private by default.
    publishConfig: { access: "public" },
    scripts: { prepack: `${run} build`, prepublishOnly: `${run} check && ${packageManager} test` }
  }
}

/** Returns the text of the file. `version` is that of this package. */
export const packageJson = (project: Project, version: string): string => {
  const versions = (names: ReadonlyArray<Dependency>): Record<string, string> =>
    Object.fromEntries(
      names.toSorted().map((
        name
      ) => [name, Object.hasOwn(ranges, name) ? ranges[name as keyof typeof ranges] : `^${version}`])
    )
  const published = project.template === "stdio" ? publishing(project) : undefined
  const [needed, development] = [versions(dependencies(project)), versions(devDependencies(project))]
  const members = {
    name: project.name,
    version: "0.1.0",
    ...published === undefined ? { private: true } : undefined,
    type: "module",
    ...published,
    scripts: { ...scripts(project.template), ...published?.scripts },
    ...published === undefined
      ? { dependencies: needed, devDependencies: development }
      : { devDependencies: versions([...dependencies(project), ...devDependencies(project)]) },
    engines: { node: nodeRange }
  }
  return `${JSON.stringify(members, undefined, 2)}\n`
}

/** Replaces the commands of npm in a text for people by those of another package manager. */
export const withPackageManager = (text: string, name: PackageManager): string =>
  name === "npm" ? text : text
    .replaceAll(/\bnpm run\b/g, packageManagers[name].run)
    .replaceAll(/\bnpm (install|start|test)\b/g, `${name} $1`)

/**
 * Replaces the installation in a Dockerfile by that of another package manager. npm still runs the build, because the
 * image has no other package manager.
 */
export const withInstallation = (dockerfile: string, name: PackageManager): string =>
  dockerfile
    .replace(packageManagers.npm.installFrom, packageManagers[name].installFrom)
    .replace(packageManagers.npm.installInImage, packageManagers[name].installInImage)
