/**
 * Lint rules. The rules of a package's imports are computed from the tables below, because a later override replaces
 * the options of an earlier one: `no-restricted-imports` has to list all of its patterns wherever it is set.
 *
 * `scripts/conventions.test.ts` breaks each rule on purpose, so that a rule without effect fails a test.
 */
import { defineConfig, type OxlintOverride } from "oxlint"

/** The packages that each package may import. Imports point down: never to a package beside or above. */
const mayImport: Readonly<Record<string, ReadonlyArray<string>>> = {
  protocol: [],
  runtime: ["protocol"],
  server: ["protocol", "runtime"],
  client: ["protocol", "runtime"],
  testing: ["protocol", "runtime", "server", "client"],
  sql: [],
  tasks: ["protocol", "runtime", "server", "sql"],
  auth: ["protocol", "runtime", "server", "client"],
  cli: ["protocol", "runtime", "client", "tasks", "auth"],
  console: ["protocol", "runtime", "server", "tasks"],
  "create-skein": [],
  openapi: ["protocol", "runtime", "server"],
  gateway: ["protocol", "runtime", "server", "client"],
  apps: ["protocol", "runtime", "server", "client"],
  "code-mode": ["protocol", "runtime", "server"]
}

/** The modules of a package that may import fewer packages than the rest of it. */
const mayImportLess: ReadonlyArray<{
  readonly name: string
  readonly files: ReadonlyArray<string>
  readonly packages: ReadonlyArray<string>
  /** The packages whose types alone they may import. They may import the package's own public modules as types only, too. */
  readonly types?: ReadonlyArray<string>
  /** Whether they may use Node. */
  readonly node: boolean
}> = [
  // A client that signs in does not load a server, and a protected server does not load a client.
  {
    name: "auth",
    files: [
      "{OAuth,OAuthError,Grant,SignIn,WebSignIn,Outbound}.ts",
      "{TokenStore,TokenStoreError,SqlTokenStore,KeyValueTokenStore,BrowserTokenStore,EncryptedTokenStore}.ts",
      "internal/oauth/**/*.ts"
    ],
    packages: ["protocol", "runtime", "client"],
    node: false
  },
  {
    name: "auth",
    files: ["{Loopback,PasteSignIn,FileTokenStore,NodeOutbound}.ts", "internal/node/**/*.ts"],
    packages: ["protocol", "runtime", "client"],
    node: true
  },
  {
    name: "auth",
    files: ["{Protect,Scopes,TokenVerifier,RequestVerifier,ReplayStore,SqlReplayStore}.ts", "internal/protect/**/*.ts"],
    packages: ["protocol", "runtime", "server"],
    node: false
  },
  // For both sides.
  { name: "auth", files: ["internal/{cipher,web}.ts"], packages: ["protocol", "runtime"], node: false },
  // Values for both sides: they import the types of either package, and load neither.
  {
    name: "auth",
    files: ["{Providers,Secret}.ts", "internal/providers/**/*.ts"],
    packages: ["protocol", "runtime"],
    types: ["client", "server"],
    node: false
  },
  {
    name: "auth",
    files: ["{Proxy,ProxyStore,UpstreamToken}.ts", "internal/proxy/**/*.ts"],
    packages: ["protocol", "runtime", "server"],
    node: true
  },
  // A server with apps does not load a client, a host does not load a server, and a page loads neither.
  {
    name: "apps",
    files: [
      "{App,AppHtml,Approval,AskError,Choice,Upload,UploadError}.ts",
      "internal/{askTool,fileReceiver,openQuestions,readyPages}.ts"
    ],
    packages: ["protocol", "runtime", "server"],
    node: false
  },
  {
    name: "apps",
    files: ["{AppHost,AppFrame,AppError}.ts", "internal/{appSession,pageMethods}.ts"],
    packages: ["protocol", "runtime", "client"],
    node: false
  },
  {
    name: "apps",
    files: [
      "{SandboxProxy,UiMessage,UiMeta,UiPolicy,View,ViewError}.ts",
      "internal/{dom,pageQuestion,pageScripts,viewPort,viewStyle}.ts"
    ],
    packages: ["protocol"],
    node: false
  }
]

/**
 * The modules under `src` that may import `node:` modules and use `process` and `Buffer`. A package that is not named
 * has none.
 */
const mayUseNode: Readonly<Record<string, ReadonlyArray<string>>> = {
  server: ["{Stdio,NodeHttp,NodePages,NodeSkills}.ts", "internal/{**/node*,stdio*,stdout,stdio/*}.ts"],
  client: ["{Stdio,NodeConfig,NodeHttp}.ts", "bin/*.ts", "internal/{**/node*,stdio*,process,stdio/*}.ts"],
  testing: ["**/*.ts"],
  sql: ["**/*.ts"],
  tasks: ["{Memory,Sqlite,Postgres,Sql}Tasks.ts", "internal/**/node*.ts"],
  auth: ["DevServer.ts", "internal/testing/**/*.ts"],
  cli: ["bin/*.ts", "internal/**/node*.ts"],
  "create-skein": ["**/*.ts"],
  openapi: ["internal/**/node*.ts"],
  apps: ["AppFile.ts"],
  "code-mode": ["internal/node*.ts"]
}

/** The modules that may import types of `node:` modules, and nothing else of Node. */
const mayUseNodeTypes: Readonly<Record<string, ReadonlyArray<string>>> = {
  runtime: ["NodeStreams.ts"],
  server: ["NodeRoutes.ts"]
}

interface Pattern {
  readonly regex: string
  readonly message: string
  readonly allowTypeImports?: boolean
}

const barrels: ReadonlyArray<Pattern> = [
  {
    regex: "^(effect(/[a-z-]+)?|@effect/platform-node|@effect/platform-node-shared)$",
    message: "Import Effect by module (effect/Effect), not through a barrel: a program loads only what it uses."
  },
  {
    regex: "^@skein/[a-z-]+$|(^|/)index\\.ts$",
    message:
      "Import the module (@skein/protocol/JsonRpc, ./JsonRpc.ts), not an index: an index loads the whole package."
  }
]

const byPath: Pattern = {
  regex: "^(\\.\\./)+((packages|node_modules)/|[a-z-]+/(src|dist|test)/)",
  message: "Import another package by its name, not by a path."
}

/** The workspaces outside `packages`. No package may import them. */
const programs: ReadonlyArray<string> = ["examples", "benchmarks", "interop", "scratchpad"]

/** Every package that is not allowed, since the linter's regular expressions have no look-ahead. */
const otherPackages = (allowed: ReadonlyArray<string>): Pattern => {
  const forbidden = [...Object.keys(mayImport), ...programs].filter((name) => !allowed.includes(name))
  return {
    regex: `^@skein/(${forbidden.join("|")})(/|$)`,
    message: `Imports point down: this package may import ${allowed.length === 0 ? "no other" : allowed.join(", ")}.`
  }
}

const node: Pattern = {
  regex: "^node:",
  message: "Only the modules that oxlint.config.ts lists in mayUseNode may import Node's modules."
}

/** Imports that are for types only: of some packages, and of the public modules beside a module. */
const typesOnly = (packages: ReadonlyArray<string>): ReadonlyArray<Pattern> => [
  {
    regex: `^@skein/(${packages.join("|")})/|^(\\./|(\\.\\./)+)[A-Z]\\w*\\.ts$`,
    message: "This module serves both sides: it may import their types only.",
    allowTypeImports: true
  }
]

const restrict = (
  name: string,
  files: ReadonlyArray<string>,
  more: ReadonlyArray<Pattern>,
  allowed = mayImport[name] ?? []
): OxlintOverride => ({
  files: files.map((file) => `packages/${name}/src/${file}`),
  rules: {
    "no-restricted-imports": ["error", {
      patterns: [...barrels, byPath, otherPackages(allowed), ...more]
    }],
    ...(more.length === 0 ? { "no-restricted-globals": "off" } : {})
  }
})

const importRules = Object.keys(mayImport).flatMap((name) => {
  const [withNode, withTypes] = [mayUseNode[name], mayUseNodeTypes[name]]
  return [
    restrict(name, ["**/*.ts"], [node]),
    ...(withTypes === undefined ? [] : [restrict(name, withTypes, [{ ...node, allowTypeImports: true }])]),
    ...(withNode === undefined ? [] : [restrict(name, withNode, [])]),
    ...mayImportLess.filter((less) => less.name === name).map(
      ({ files, node: mayUseNode, packages, types }) =>
        restrict(
          name,
          files,
          [...mayUseNode ? [] : [node], ...types === undefined ? [] : typesOnly(types)],
          [...packages, ...types ?? []]
        )
    )
  ]
})

export default defineConfig({
  plugins: ["eslint", "typescript", "unicorn", "oxc", "import", "promise", "vitest"],
  categories: { correctness: "error", suspicious: "error", perf: "error" },
  env: { node: true, es2024: true },
  ignorePatterns: ["**/dist", "**/.tsbuild", "**/node_modules"],
  options: { reportUnusedDisableDirectives: "error" },
  rules: {
    eqeqeq: ["error", "always", { null: "ignore" }],
    "no-underscore-dangle": "off",
    "no-shadow": "off",
    "no-await-in-loop": "off",
    "unicorn/no-array-sort": "off",
    "unicorn/no-useless-spread": "off",
    "unicorn/consistent-function-scoping": "off",
    "unicorn/no-new-array": "off",
    "oxc/approx-constant": "off",
    "oxc/no-map-spread": "off",
    "no-unmodified-loop-condition": "off",
    "unicorn/prefer-add-event-listener": "off",
    "vitest/expect-expect": "off",
    "vitest/no-conditional-expect": "off",
    "promise/valid-params": "off",
    "vitest/no-standalone-expect": "off",
    "unicorn/no-array-reverse": "off",
    "unicorn/require-module-specifiers": "off",
    "vitest/no-conditional-tests": "off",
    "vitest/valid-describe-callback": "off",
    "vitest/valid-title": "off",
    "vitest/require-mock-type-parameters": "off",
    "vitest/no-disabled-tests": "off",
    "no-var": "error",
    "prefer-const": "error",
    "no-eval": "error",
    "no-new-func": "error",
    "no-throw-literal": "error",
    "import/no-cycle": ["error", { ignoreTypes: false }],
    "import/no-self-import": "error",
    "import/no-duplicates": "error",
    "import/namespace": "off",
    "import/named": "off",
    "typescript/consistent-type-imports": "error",
    "vitest/no-focused-tests": "error"
  },
  overrides: [
    {
      files: ["packages/*/src/**/*.ts"],
      rules: {
        "no-console": "error",
        "typescript/no-explicit-any": "error",
        "import/no-default-export": "error",
        "no-restricted-globals": ["error", "process", "Buffer"]
      }
    },
    ...importRules
  ]
})
