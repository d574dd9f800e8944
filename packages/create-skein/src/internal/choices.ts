/**
 * The choices that a project is made from, and the rules for its name.
 */

/** The templates, with the text of a prompt. */
export const templates = {
  stdio: "a server that a host starts as a process",
  http: "a server over HTTP",
  tasks: "a server with long-running tasks, over HTTP",
  client: "a client in a host application"
} as const

/** The styles, with the text of a prompt. */
export const styles = {
  async: "async functions, and zod schemas",
  effect: "functions that return effects, and Effect schemas: for users of Effect"
} as const

interface Manager {
  /** How it installs the dependencies of a project. */
  readonly install: ReadonlyArray<string>
  /** How a shell runs a script. */
  readonly run: string
  /** The files beside `package.json` that it installs from, as patterns of a Dockerfile: each file may be missing. */
  readonly installFrom: string
  /** How it installs the dependencies in an image that has npm only. */
  readonly installInImage: string
}

/** The package managers. */
export const packageManagers = {
  npm: {
    install: ["install"],
    run: "npm run",
    installFrom: "package-lock.json* .npmrc*",
    installInImage: "npm install"
  },
  pnpm: {
    install: ["install"],
    run: "pnpm run",
    installFrom: "pnpm-lock.yaml* pnpm-workspace.yaml* .npmrc*",
    installInImage: "npx --yes pnpm install"
  },
  yarn: {
    install: ["install"],
    run: "yarn run",
    installFrom: "yarn.lock* .yarnrc* .npmrc*",
    installInImage: "npx --yes yarn install"
  }
} as const satisfies Record<string, Manager>

export type Template = keyof typeof templates
export type Style = keyof typeof styles
export type PackageManager = keyof typeof packageManagers

/** The default of each choice. Users of Effect recognize the other style by its name; others may not know the word. */
export const defaults = { folder: "mcp-server", template: "stdio", style: "async" } as const

/** The package manager that started this process, from the user agent that it sets. */
export const packageManagerOf = (userAgent: string | undefined): PackageManager => {
  const name = userAgent?.split("/")[0] ?? ""
  return Object.hasOwn(packageManagers, name) ? name as PackageManager : "npm"
}

// npm's rules for new packages. A name with other characters could also change the sources that contain it.
const packageName = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/
const maxNameLength = 214
const reserved = new Set(["node_modules", "favicon.ico", "effect", "skein", "zod", "vitest", "typescript", "rolldown"])

/** Returns why a name cannot be the name of a package, or `undefined`. */
export const nameProblem = (name: string): string | undefined => {
  const shown = JSON.stringify([...name].slice(0, 100).join(""))
  if (name === "") return "The name is empty"
  if (name.length > maxNameLength) return `The name ${shown} has more than ${maxNameLength} characters`
  if (reserved.has(name)) return `The name ${shown} is taken by a package that the project needs, or by npm`
  return packageName.test(name)
    ? undefined
    : `The name ${shown} is not a package name: use lowercase letters, digits, "-", "_" and ".", and start with a letter or a digit`
}

/** A package name that is like the last part of a path. */
export const nameOf = (folder: string): string =>
  (folder.split(/[/\\]/).findLast((part) => part !== "" && part !== ".") ?? "").toLowerCase()
    .replaceAll(/[^a-z0-9._~-]+/g, "-").replace(/^[._-]+/, "").replace(/-+$/, "")
