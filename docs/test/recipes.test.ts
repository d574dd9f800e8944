/** The programs of the recipes that no other guide has. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as HttpConfig from "@skein/server/HttpConfig"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { loadAll } from "js-yaml"
import { globSync } from "node:fs"
import { Tenants } from "../programs/headersEffect.ts"
import { blocksOf, docs, read } from "./blocks.ts"

describe("programs/headersEffect.ts", () => {
  it.live("reads a header that the client sends", () =>
    Effect.gen(function*() {
      const server = yield* Layer.build(Layer.provide(NodeHttp.layer({ port: 0 }), Tenants))
      const { url } = Context.get(server, NodeHttp.Server)
      const client = yield* Client.make(Http.transport({ url, headers: { "x-tenant": "ada" } }))
      expect(yield* client.callTool("tenant")).toMatchObject({ content: [{ text: "You are ada" }] })
    }).pipe(Effect.scoped))
})

describe("recipes/docker.md", () => {
  it("shows the Dockerfile of a created project", () => {
    const [, shown] = /^```dockerfile\n([^]*?)^```$/m.exec(read("recipes/docker.md")) ?? []
    expect(shown).toBe(read("../packages/create-skein/templates/http/shared/Dockerfile"))
  })
})

interface Service {
  readonly environment?: Readonly<Record<string, string>>
  readonly depends_on?: object
  readonly volumes?: ReadonlyArray<string>
}

describe("Compose", () => {
  const [{ services, volumes }] = blocksOf("recipes/docker.md").filter(({ info }) => info === "yaml")
    .flatMap(({ text }) => loadAll(text)) as [{
      readonly services: Readonly<Record<string, Service>>
      readonly volumes: object
    }]

  it.live("recipes/docker.md: the server reads the variables", () =>
    Effect.gen(function*() {
      const { DATABASE_URL, ...env } = services["shop"]!.environment!
      const filled = Object.entries(env).map(([name, value]) => [name, value.replace(/\$\{\w+:\?\}/, "k".repeat(32))])
      const options = yield* HttpConfig.config().pipe(
        Effect.provideService(
          ConfigProvider.ConfigProvider,
          ConfigProvider.fromEnv({ env: Object.fromEntries(filled) })
        )
      )
      expect(options).toMatchObject({ allowedHosts: ["mcp.example.com"], trustedProxies: 1, health: true })
      expect(options.stateKeys).toHaveLength(1)
      expect(new URL(DATABASE_URL!.replace("${DATABASE_PASSWORD:?}", "secret")).hostname).toBe("database")
    }))

  it("recipes/docker.md: names only services and volumes that it has", () => {
    const names = Object.values(services).flatMap(({ depends_on = [] }) =>
      Array.isArray(depends_on) ? depends_on as Array<string> : Object.keys(depends_on)
    )
    for (const name of names) expect(services).toHaveProperty(name)
    const mounted = Object.values(services).flatMap(({ volumes = [] }) => volumes).map((text) => text.split(":")[0]!)
    expect(mounted.filter((name) => !name.startsWith("."))).toEqual(Object.keys(volumes))
  })
})

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}

interface Pod {
  readonly spec: {
    readonly terminationGracePeriodSeconds: number
    readonly containers: ReadonlyArray<{
      readonly ports: ReadonlyArray<{ readonly name: string; readonly containerPort: number }>
      readonly env: ReadonlyArray<{ readonly name: string; readonly value: string }>
      readonly startupProbe: Probe
      readonly livenessProbe: Probe
      readonly readinessProbe: Probe
    }>
  }
}

interface Adapter {
  readonly rules: ReadonlyArray<{ readonly seriesQuery: string; readonly name: { readonly as: string } }>
}

describe("Kubernetes", () => {
  const yamlOf = (page: string): ReadonlyArray<unknown> =>
    blocksOf(page).filter(({ info }) => info === "yaml").flatMap(({ text }) => loadAll(text))
  const [pod, service, ingress, budget, scaler, adapter] = yamlOf("recipes/kubernetes.md") as [
    Pod,
    unknown,
    unknown,
    unknown,
    unknown,
    Adapter
  ]
  const container = pod.spec.containers[0]!
  const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe]

  it.live("recipes/kubernetes.md: the server reads the variables, answers the probes, and has the time to shut down", () =>
    Effect.gen(function*() {
      const env = Object.fromEntries(container.env.map(({ name, value }) => [name, value]))
      const options = yield* HttpConfig.config().pipe(
        Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))
      )
      expect(options).toMatchObject({ host: "0.0.0.0", allowedHosts: ["mcp.example.com"], trustedProxies: 1 })
      // The default of shutdownTimeout is five seconds, and finalizers have as long.
      expect(pod.spec.terminationGracePeriodSeconds).toBeGreaterThan(Duration.toSeconds(options.drainDelay!) + 5 + 5)
      const local = { host: "127.0.0.1", port: 0, drainDelay: 0 }
      const server = yield* Layer.build(Layer.provide(NodeHttp.layer({ ...options, ...local }), Tenants))
      for (const { httpGet: { path, port } } of probes) {
        expect(container.ports).toEqual([{ name: port, containerPort: 3000 }])
        // A probe has the address of the pod in its Host.
        const url = new URL(path, `http://127.0.0.1:${Context.get(server, NodeHttp.Server).port}`)
        expect((yield* Effect.promise(() => fetch(url))).status).toBe(200)
      }
    }).pipe(Effect.scoped))

  it("recipes/kubernetes.md: the ingress has the paths of the server, and leads to a port of the pod", () => {
    const [port] = container.ports
    const backend = { service: { name: "shop", port: { name: "http" } } }
    const paths = ["/mcp", "/.well-known/oauth-protected-resource"].map((path) => ({ path, backend }))
    const host = container.env.find(({ name }) => name === "SKEIN_ALLOWED_HOSTS")?.value
    expect([service, ingress]).toMatchObject([
      { kind: "Service", metadata: { name: "shop" }, spec: { ports: [{ name: "http", targetPort: port?.name }] } },
      { kind: "Ingress", spec: { rules: [{ host, http: { paths } }] } }
    ])
  })

  it("recipes/kubernetes.md: the budget and the autoscaler are about the pods, and read a metric of the server", () => {
    const [rule] = adapter.rules
    expect([budget, scaler]).toMatchObject([
      { apiVersion: "policy/v1", spec: { maxUnavailable: 1, selector: { matchLabels: { app: "shop" } } } },
      {
        apiVersion: "autoscaling/v2",
        spec: {
          scaleTargetRef: { kind: "Deployment", name: "shop" },
          metrics: [{ type: "Pods", pods: { metric: { name: rule!.name.as } } }]
        }
      }
    ])
    const series = rule!.seriesQuery.replace(/\{.*/, "")
    expect(read("recipes/prometheus.md")).toContain(`- \`${series}\`, a gauge`)
  })
})

/** The texts of a message of `docs/messages` between its `${…}`, which may have braces inside. */
const textsOf = (message: string): ReadonlyArray<string> => {
  const texts = [""]
  let depth = 0
  for (const part of message.split(/(\$\{|\{|\})/)) {
    const isEnd = part === "}" && depth > 0
    if (depth === 0 && part !== "${") texts[texts.length - 1] += part
    if (depth === 0 && part === "${") texts.push("")
    depth += part === "${" || (part === "{" && depth > 0) ? 1 : isEnd ? -1 : 0
  }
  return texts
}

describe("troubleshooting.md", () => {
  it("has headings that are messages of the packages", () => {
    const [own = ""] = read("troubleshooting.md").split("## Messages of other programs")
    const titles = Array.from(own.matchAll(/^### (.+)$/gm), ([, title = ""]) => title)
    expect(titles.length).toBeGreaterThan(15)
    const messages = globSync("messages/*.md", { cwd: docs }).flatMap((page) =>
      Array.from(read(page).matchAll(/^- (.+)$/gm), ([, message = ""]) => textsOf(message.replaceAll("\\`", "`")))
    )
    /** A message that explains a title has its texts in the same order, and all words of the title outside of its values. */
    const explains = (title: string) => (texts: ReadonlyArray<string>): boolean => {
      const words = title.replaceAll(/⟨.*?⟩/g, "").length
      if (texts.length === 1) return texts[0]!.startsWith(title)
      const pattern = texts.map((text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*")
      return texts.join("").length >= words && new RegExp(`^${pattern}$`).test(title.replaceAll(/[⟨⟩]/g, ""))
    }
    expect(titles.filter((title) => !messages.some(explains(title)))).toEqual([])
  })
})
