/**
 * The groups of the sidebar. Each page of `docs` must be in one group, which `docs/test/site.test.ts` checks: add a page
 * here when you add it to `docs`.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** The folder `docs`. */
export const docs = join(import.meta.dirname, "..")

/** The folder of the repository. */
export const root = join(docs, "..")

/** A page: its path from `docs`. Its title in the sidebar is its first heading. */
export type Page = string

/** Pages under a heading. */
export interface Group {
  readonly title: string
  readonly pages: ReadonlyArray<Page | Group>
  /** The sidebar shows only the heading until the reader opens the group, or one of its pages. */
  readonly isFolded?: true
  /** `llms.txt` lists the pages as optional, and `llms-full.txt` leaves them out. */
  readonly isOptional?: true
}

/** The pages of a folder of `docs` in the order of their names, without its `README.md`. */
export const pagesIn = (folder: string): ReadonlyArray<Page> =>
  readdirSync(join(docs, folder)).filter((name) => name.endsWith(".md") && name !== "README.md").sort()
    .map((name) => join(folder, name))

/** The five paths of `docs/README.md` in its order, and the reference. */
export const groups: ReadonlyArray<Group> = [
  {
    title: "Start",
    pages: [
      "README.md",
      "quickstart-stdio.md",
      "quickstart-http.md",
      "quickstart-client.md",
      "quickstart-tasks.md",
      "by-hand.md",
      "clone.md"
    ]
  },
  {
    title: "Write a server",
    pages: [
      "promises.md",
      "authoring.md",
      "asking.md",
      "state.md",
      "developing.md",
      {
        title: "More of servers",
        pages: [
          "versions-and-changes.md",
          "middleware.md",
          "composing.md",
          "openapi.md",
          "apps.md",
          "skills.md",
          "gateway.md",
          "remote-servers.md",
          "code-mode.md"
        ]
      }
    ]
  },
  { title: "Use Effect", pages: ["async-and-effect.md", "effect.md", "effect-applications.md"] },
  {
    title: "Build a host",
    pages: [
      "embedding.md",
      "async-client.md",
      "calls.md",
      "configured-servers.md",
      "answering.md",
      "staying.md",
      "signing-in.md",
      "model-schemas.md",
      "generated-clients.md"
    ]
  },
  {
    title: "Run long tasks",
    pages: [
      "tasks.md",
      "tasks-events.md",
      "tasks-guarantees.md",
      "tasks-testing.md",
      "tasks-machines.md",
      "tasks-operating.md"
    ]
  },
  {
    title: "Operate",
    pages: [
      "behind-a-proxy.md",
      "several-instances.md",
      "growth.md",
      "health.md",
      "configuration.md",
      "console.md",
      "recipes/logs.md",
      "recipes/prometheus.md",
      {
        title: "Deploy",
        pages: [
          "http.md",
          "recipes/docker.md",
          "recipes/hosting.md",
          "recipes/nginx.md",
          "recipes/haproxy.md",
          "recipes/kubernetes.md",
          "recipes/serverless.md"
        ]
      },
      {
        title: "Protect",
        pages: [
          "recipes/api-key.md",
          "protecting.md",
          "proxy.md",
          "identity-providers.md",
          { title: "Providers", pages: pagesIn("providers"), isFolded: true }
        ]
      },
      "troubleshooting.md"
    ]
  },
  {
    title: "Recipes",
    pages: [
      "recipes/headers.md",
      "recipes/publish.md",
      "recipes/existing-application.md",
      "recipes/testing.md"
    ]
  },
  {
    title: "Coming from",
    isFolded: true,
    pages: [
      "coming-from/sdk-v1.md",
      "coming-from/sdk-v2.md",
      "coming-from/fastmcp-ts.md",
      "coming-from/fastmcp-npm.md",
      "coming-from/fastmcp-python.md",
      "coming-from/effect-ai.md",
      "comparison.md",
      "task-engines.md"
    ]
  },
  {
    title: "Reference",
    pages: [
      "cli.md",
      "glossary.md",
      "security.md",
      "security-audit.md",
      "tokens-and-threats.md",
      {
        title: "Limits",
        isFolded: true,
        pages: ["limits.md", "limits-client.md", "limits-auth.md", "limits-tasks.md", "limits-proxy.md"]
      },
      { title: "Messages", pages: pagesIn("messages"), isFolded: true, isOptional: true }
    ]
  },
  {
    title: "Project",
    isFolded: true,
    pages: [
      "architecture.md",
      { title: "Decisions", pages: ["decisions/README.md", ...pagesIn("decisions")], isFolded: true },
      "conformance.md",
      "benchmarks.md",
      {
        title: "Repository",
        pages: ["../CHANGELOG.md", ...pagesIn("changes"), "renamed.md", "../CONTRIBUTING.md", "../SECURITY.md"],
        isFolded: true,
        isOptional: true
      }
    ]
  }
]

/** A page with the attribute of its group. */
export interface Listed {
  readonly page: Page
  readonly isOptional: boolean
}

/** The pages of a group and of the groups in it. */
export const pagesOf = ({ isOptional, pages }: Group): ReadonlyArray<Listed> =>
  pages.flatMap((entry) =>
    typeof entry === "string"
      ? [{ page: entry, isOptional: isOptional === true }]
      : pagesOf(isOptional === true ? { ...entry, isOptional } : entry)
  )

/** All pages of the sidebar. */
export const pages: ReadonlyArray<Page> = groups.flatMap((group) => pagesOf(group).map(({ page }) => page))

/** The text of a page. */
export const read = (page: Page): string => readFileSync(join(docs, page), "utf8")

/** The first heading of a page, without the marks of code and without escapes. */
export const titleOf = (text: string): string =>
  (/^# (.+)$/m.exec(text)?.[1] ?? "").replaceAll("`", "").replaceAll(/\\(?=\W)/g, "")

/** The title of a page under the heading of its group: without the words of the heading. */
export const labelOf = (text: string): string => {
  const title = titleOf(text).replace(/^(?:Recipe: |Coming from (?:the )?)/, "")
  return title.charAt(0).toUpperCase() + title.slice(1)
}

/** The path of a page in the site. A `README.md` of GitHub is an index, and files above `docs` have names of their own. */
export const sitePath = (page: Page): string =>
  ({
    "README.md": "guides.md",
    "../CHANGELOG.md": "changelog.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../SECURITY.md": "reporting.md"
  })[page] ?? page.replace(/(^|\/)README\.md$/, "$1index.md")
