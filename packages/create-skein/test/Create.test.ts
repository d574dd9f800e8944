import { afterEach, beforeEach, describe, expect, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as CreateSkein from "../src/CreateSkein.ts"
import { nameOf, nameProblem, packageManagerOf, packageManagers, styles, templates } from "../src/internal/choices.ts"
import { type Ask, complete, parse, usage } from "../src/internal/commandLine.ts"
import { nodeRange, ranges } from "../src/internal/packageJson.ts"

const root = join(import.meta.dirname, "../../..")
const readJson = (path: string) => JSON.parse(readFileSync(path, "utf8"))

let temporary = ""
beforeEach(() => void (temporary = mkdtempSync(join(tmpdir(), "create-skein-"))))
afterEach(() => rmSync(temporary, { recursive: true, force: true }))

const choices = Object.keys(templates).flatMap((template) =>
  Object.keys(styles).map((style) => ({ template, style }) as Pick<CreateSkein.Options, "template" | "style">)
)

describe("create", () => {
  it.each(choices)("writes a complete project: $template, $style", async ({ style, template }) => {
    const folder = join(temporary, "deep/my-project")
    const paths = await CreateSkein.create({ folder, template, style })
    const found = globSync("**/*", { cwd: folder }).filter((path) => statSync(join(folder, path)).isFile())
    expect(paths).toEqual(expect.arrayContaining(found))
    const container = template === "http" || template === "tasks" ? [".dockerignore", "Dockerfile"] : []
    const test = template === "client" ? "test/host.test.ts" : "test/server.test.ts"
    expect(paths).toEqual(expect.arrayContaining([
      ".env.example",
      ".gitignore",
      ...container,
      "README.md",
      "package.json",
      "src/main.ts",
      test,
      "tsconfig.json"
    ]))
    expect(paths.some((path) => path.includes("ockerfile"))).toBe(container.length > 0)
    const texts = paths.map((path) => readFileSync(join(folder, path), "utf8"))
    expect(texts.filter((text) => /skein-template|@skein\/template/.test(text))).toEqual([])
    const zod = texts.filter((text) => text.includes("\"zod\""))
    expect(zod.length > 0).toBe(style === "async")
    const { dependencies, devDependencies, scripts, type } = readJson(join(folder, "package.json"))
    expect(type).toBe("module")
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(["build", "check", "dev", "inspect", "start", "test"]))
    // Each imported package is a dependency, and each dependency is imported, unless it is a tool or a peer.
    const sources = texts.filter((_, at) => paths[at]!.endsWith(".ts")).join("\n")
    const imported = Array.from(sources.matchAll(/ from "((?:@[\w-]+\/)?[\w-]+)[/"]/g), ([, name]) => name)
    const listed = Object.keys({ ...dependencies, ...devDependencies })
    // A program of async functions has one package of Skein, and none of Effect.
    const ours = listed.filter((name) => /^skein$|^@?effect\b|^@skein\//.test(name))
    if (style === "async") expect(ours).toEqual(["skein"])
    // Not every package manager installs peers, which a program need not import.
    const peers = listed.flatMap((name) => {
      const { peerDependencies = {}, peerDependenciesMeta = {} } = readJson(
        join(root, "node_modules", name, "package.json")
      )
      const isNeeded = (peer: string) => peerDependenciesMeta[peer]?.optional !== true
      return Object.keys(peerDependencies).filter(isNeeded)
    })
    const program = style === "async" ? "skein" : "@skein/cli"
    const tools = [program, "@types/node", "rolldown", "typescript", "vitest"]
    // No module that the tasks use imports Redis, a peer of @effect/platform-node.
    const needed = peers.filter((name) => name !== "redis")
    expect(new Set([...imported, ...tools, ...needed])).toEqual(new Set(listed))
  })

  it("writes a package that can be published for stdio, and private ones otherwise", async () => {
    for (const { style, template } of choices) {
      const folder = join(temporary, `${template}-${style}`)
      await CreateSkein.create({ folder, template, style, packageManager: "pnpm" })
      const { bin, dependencies, files, private: isPrivate, scripts } = readJson(join(folder, "package.json"))
      const isPublished = template === "stdio"
      expect([bin, files]).toEqual(isPublished ? ["dist/main.cjs", ["dist/main.cjs"]] : [undefined, undefined])
      expect([isPrivate, dependencies === undefined]).toEqual(isPublished ? [undefined, true] : [true, false])
      expect([scripts.prepack, scripts.prepublishOnly])
        .toEqual(isPublished ? ["pnpm run build", "pnpm run check && pnpm test"] : [undefined, undefined])
    }
  })

  it("names the server after the package, without its scope", async () => {
    await CreateSkein.create({ folder: temporary, name: "@acme/tea-shop", template: "stdio", style: "async" })
    expect(readJson(join(temporary, "package.json")).name).toBe("@acme/tea-shop")
    expect(readFileSync(join(temporary, "src/server.ts"), "utf8")).toContain(
      "{ name: \"tea-shop\", version: \"1.0.0\" }"
    )
    const readme = readFileSync(join(temporary, "README.md"), "utf8")
    expect(readme).toMatch(/^# tea-shop\n/)
    // Another package may have the name without the scope.
    expect(readme).toContain("\"tea-shop\": { \"command\": \"npx\", \"args\": [\"-y\", \"@acme/tea-shop\"]")
  })

  it("has the entries of the hosts as JSON", async () => {
    for (const { style, template } of choices) {
      const folder = join(temporary, `${template}-${style}`)
      await CreateSkein.create({ folder, template, style })
      const readme = readFileSync(join(folder, "README.md"), "utf8")
      const blocks = Array.from(readme.matchAll(/```json\n([^]*?)```/g), ([, json = ""]) => JSON.parse(json))
      const members = new Set(blocks.flatMap((block) => Object.keys(block)))
      expect(members).toEqual(new Set(template === "client" ? ["mcpServers"] : ["mcpServers", "servers"]))
    }
  })

  it("names the commands of the package manager", async () => {
    await CreateSkein.create({
      folder: temporary,
      name: "a",
      template: "http",
      style: "effect",
      packageManager: "pnpm"
    })
    const readme = readFileSync(join(temporary, "README.md"), "utf8")
    expect(readme).toMatch(/pnpm install\npnpm test\npnpm run dev/)
    expect(readme).not.toMatch(/\bnpm /)
  })

  it.each(
    [
      ["npm", "package-lock.json* .npmrc*", "npm install"],
      ["pnpm", "pnpm-lock.yaml* pnpm-workspace.yaml* .npmrc*", "npx --yes pnpm install"],
      ["yarn", "yarn.lock* .yarnrc* .npmrc*", "npx --yes yarn install"]
    ] as const
  )("installs with %s in an image that has npm only", async (packageManager, files, command) => {
    await CreateSkein.create({ folder: temporary, name: "a", template: "http", style: "effect", packageManager })
    const dockerfile = readFileSync(join(temporary, "Dockerfile"), "utf8")
    expect(dockerfile).toContain(`COPY package.json ${files} ./\n`)
    expect(dockerfile.match(/(?<=^RUN ).*$/gm)).toEqual([command, "npm run build"])
  })

  it("rejects a folder that is not empty, except for a repository, and a file", async () => {
    const options = { template: "stdio", style: "effect" } as const
    const folder = join(temporary, "app")
    mkdirSync(join(folder, ".git"), { recursive: true })
    await CreateSkein.create({ folder, ...options })
    await expect(CreateSkein.create({ folder, ...options })).rejects.toThrow(/^The folder .*app is not empty \(/)
    const file = join(temporary, "file")
    writeFileSync(file, "")
    await expect(CreateSkein.create({ folder: file, ...options })).rejects.toThrow(/is a file$/)
    expect(readFileSync(file, "utf8")).toBe("")
  })
})

describe("names", () => {
  it("are those of packages", () => {
    for (const name of ["a", "tea-shop", "@acme/tea.shop", "~x", "9"]) expect(nameProblem(name)).toBeUndefined()
    const bad = [
      "",
      "Tea",
      "a b",
      ".a",
      "_a",
      "@acme",
      "@acme/",
      "a/b",
      "../a",
      "a\"",
      "a`",
      "${a}",
      "a\n",
      "ä",
      "effect",
      "skein"
    ]
    for (const name of [...bad, "node_modules", "a".repeat(215)]) expect(nameProblem(name)).toMatch(/^The name /)
  })

  it("are made from folders", () => {
    expect(nameOf("/tmp/My Server/")).toBe("my-server")
    expect(nameOf("./_x")).toBe("x")
    expect(nameOf("@acme/shop")).toBe("shop")
    expect(nameOf("日本")).toBe("")
  })
})

describe("the versions", () => {
  it("are those of this repository", () => {
    const { devDependencies, engines } = readJson(join(root, "package.json"))
    const { devDependencies: ofServer } = readJson(join(root, "packages/server/package.json"))
    const all = { zod: ofServer.zod, ...devDependencies }
    expect(ranges).toEqual(Object.fromEntries(Object.keys(ranges).map((name) => [name, all[name]])))
    expect(nodeRange).toBe(engines.node)
  })

  it("are those of this package for the packages of Skein", async () => {
    await CreateSkein.create({ folder: temporary, name: "a", template: "tasks", style: "effect" })
    const { dependencies, devDependencies } = readJson(join(temporary, "package.json"))
    const { version } = readJson(join(root, "packages/create-skein/package.json"))
    const ours = Object.entries({ ...dependencies, ...devDependencies }).filter(([name]) => name.startsWith("@skein/"))
    expect(ours).toEqual(["server", "tasks", "cli", "client"].map((name) => [`@skein/${name}`, `^${version}`]))
    for (const [name] of ours) {
      expect(readJson(join(root, "packages", name.slice("@skein/".length), "package.json")).version).toBe(version)
    }
    await CreateSkein.create({ folder: join(temporary, "b"), template: "tasks", style: "async" })
    expect(readJson(join(temporary, "b/package.json")).dependencies.skein).toBe(`^${version}`)
    expect(readJson(join(root, "packages/skein/package.json")).version).toBe(version)
  })
})

describe("the command line", () => {
  const answering = (
    answers: Readonly<Record<string, string>>
  ): { readonly ask: Ask; readonly asked: Array<string> } => {
    const asked: Array<string> = []
    return {
      asked,
      ask: async (question, initial, check) => {
        const [title = ""] = question.split("\n")
        asked.push(title)
        const checked = check(answers[title] ?? initial)
        if ("problem" in checked) throw new Error(checked.problem)
        return checked.value
      }
    }
  }

  it("asks for the choices that it does not have", async () => {
    const { ask, asked } = answering({ Folder: "Tea Shop", Template: "2", Style: "EFFECT" })
    expect(await complete(parse([]), "yarn", ask)).toEqual({
      folder: "Tea Shop",
      name: "tea-shop",
      template: "http",
      style: "effect",
      packageManager: "yarn"
    })
    expect(asked).toEqual(["Folder", "Template", "Style", "Package manager"])
    const all = answering({})
    const given = ["shop", "--template=client", "--style", "async", "--package-manager", "pnpm"]
    expect(await complete(parse(given), "npm", all.ask)).toMatchObject({ folder: "shop", packageManager: "pnpm" })
    expect(all.asked).toEqual([])
    await expect(complete(parse(["a"]), "npm", answering({ Template: "5" }).ask))
      .rejects.toThrow("Type one of stdio, http, tasks, client")
  })

  it("uses the defaults, and makes the folder from the name", async () => {
    expect(await complete(parse(["--name", "@acme/shop"]), "npm", undefined)).toEqual({
      folder: "shop",
      name: "@acme/shop",
      template: "stdio",
      style: "async",
      packageManager: "npm"
    })
    await expect(complete(parse(["日本"]), "npm", undefined)).rejects.toThrow(/^The name is empty. Set another/)
  })

  it("finds the package manager that runs it", () => {
    expect(packageManagerOf("pnpm/10.1.0 npm/? node/v24.9.0 linux x64")).toBe("pnpm")
    expect(packageManagerOf("bun/1.2")).toBe("npm")
    expect(packageManagerOf("constructor/1")).toBe("npm")
    expect(packageManagerOf(undefined)).toBe("npm")
  })

  it("lists every option and choice in its help", () => {
    for (const name of [...Object.keys(templates), ...Object.keys(styles), ...Object.keys(packageManagers)]) {
      expect(usage).toContain(name)
    }
  })
})

describe("the program", () => {
  const program = join(root, "packages/create-skein/src/bin/create-skein.ts")
  const run = (...args: ReadonlyArray<string>) => {
    const { status, stderr, stdout } = spawnSync(process.execPath, [program, ...args], {
      cwd: temporary,
      encoding: "utf8"
    })
    return { status, stderr, stdout }
  }

  it("creates a project with a repository, and reports the next steps", () => {
    const { status, stdout } = run("shop", "--template", "http", "--style", "async", "--no-install")
    expect(stdout).toContain("Created shop: http, async, ")
    expect(stdout).toContain("Next:\n  cd shop\n  npm install\n  npm run test\n  npm run dev\n")
    expect(status).toBe(0)
    expect(existsSync(join(temporary, "shop/.git"))).toBe(true)
    expect(run("shop", "--yes")).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^The folder shop is not empty/)
    })
  })

  it("creates no repository with --no-git, and inside of another one", () => {
    expect(run("one", "--yes", "--no-install", "--no-git").status).toBe(0)
    expect(existsSync(join(temporary, "one/.git"))).toBe(false)
    spawnSync("git", ["init", "--quiet"], { cwd: temporary })
    expect(run("two", "--yes", "--no-install").status).toBe(0)
    expect(existsSync(join(temporary, "two/.git"))).toBe(false)
  })

  it("exits with 2 for a command line that is not valid", () => {
    const help = "\ncreate-skein --help lists the options.\n"
    expect(run("a", "--template", "grpc")).toMatchObject({
      status: 2,
      stderr: `--template cannot be "grpc": use one of stdio, http, tasks, client${help}`
    })
    expect(run("--name", "Tea Shop")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("is not a package name")
    })
    expect(run("a", "b")).toMatchObject({ status: 2, stderr: `Unexpected arguments: b${help}` })
    const advice = "npm needs -- before the options: npm create skein"
    expect(run("a", "http", "async")).toMatchObject({
      status: 2,
      stderr: `${advice} a -- --template http --style async${help}`
    })
    expect(run("tasks", "a").stderr).toBe(`${advice} a -- --template tasks${help}`)
    // The words and variables that npm passes for `a --template=http --style async` and for `a --template grpc`.
    const variables = { npm_config_template: "http", npm_config_style: "true" }
    expect(() => parse(["a", "async"], variables)).toThrow(`${advice} a -- --template http --style async`)
    expect(() => parse(["a", "grpc"], { npm_config_template: "true" })).toThrow(`${advice} a grpc -- [options]`)
    expect(run("--colour")).toMatchObject({ status: 2, stderr: expect.stringContaining("'--colour'") })
    expect(run("a")).toMatchObject({ status: 2, stderr: expect.stringMatching(/^There is no terminal to ask on/) })
    expect(existsSync(join(temporary, "a"))).toBe(false)
  })

  it("prints its help and its version", () => {
    expect(run("--help")).toEqual({ status: 0, stderr: "", stdout: usage })
    expect(run("--version").stdout).toMatch(/^\d+\.\d+\.\d+/)
  })
})
