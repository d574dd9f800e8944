import { assert, describe, it } from "@effect/vitest"
import { environment } from "../../src/internal/stdio/process.ts"
import { type WindowsCommand, windowsCommand } from "../../src/internal/stdio/windowsCommand.ts"

const files = [
  "C:\\nodejs\\node.exe",
  "C:\\nodejs\\npx",
  "C:\\nodejs\\npx.cmd",
  "C:\\Program Files\\tool\\tool.BAT",
  "C:\\work\\bin\\serve.cmd",
  "C:\\work\\evil.cmd",
  "C:\\tools\\a.b.exe",
  "C:\\tools\\uvx.exe",
  "C:\\work\\.\\server.mjs",
  "C:\\work\\server.py",
  "C:\\work\\server.sh",
  "C:\\work\\data.txt"
]

const firstLines: Readonly<Record<string, string>> = {
  "C:\\work\\.\\server.mjs": "#!/usr/bin/env -S node --no-warnings",
  "C:\\work\\server.py": "#! /usr/bin/env absent",
  "C:\\work\\server.sh": "#!/bin/npx -y",
  "C:\\work\\data.txt": "#!"
}

const resolved = (command: string, args: ReadonlyArray<string> = [], env: Record<string, string> = {}) =>
  windowsCommand(command, args, {
    env: { Path: "C:\\nodejs;\"C:\\Program Files\\tool\";;C:\\tools\\", ComSpec: "C:\\Windows\\cmd.exe", ...env },
    cwd: "C:\\work",
    // Windows compares names without their case.
    isFile: (path) => files.some((file) => file.toUpperCase() === path.toUpperCase()),
    firstLine: (path) => firstLines[path] ?? ""
  })

const program = (command: string, ...rest: [ReadonlyArray<string>?, Record<string, string>?]) =>
  (resolved(command, ...rest) as WindowsCommand).file.toUpperCase()

const line = (args: ReadonlyArray<string>): string => {
  const { args: given, isVerbatim } = resolved("npx", args) as WindowsCommand
  assert.isTrue(isVerbatim)
  assert.deepStrictEqual(given.slice(0, 3), ["/d", "/s", "/c"])
  return given[3]!
}

/** Reads a line as `cmd.exe` does: a caret outside of quotation marks escapes, and a separator outside of both acts. */
const cmd = (text: string): { readonly text: string; readonly acts: boolean } => {
  let out = ""
  let isQuoted = false
  let acts = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!
    if (character === "^" && !isQuoted) out += text[++at] ?? ""
    else {
      if (character === "\"") isQuoted = !isQuoted
      else if (!isQuoted && /[&|<>]/.test(character)) acts = true
      out += character
    }
  }
  return { text: out, acts }
}

/** How a program reads its command line (`CommandLineToArgvW`). */
const argv = (text: string): ReadonlyArray<string> => {
  const args: Array<string> = []
  let current: string | undefined
  let isQuoted = false
  for (let at = 0; at < text.length; at++) {
    const [backslashes] = /^\\*/.exec(text.slice(at))!
    if (backslashes.length > 0 && text[at + backslashes.length] === "\"") {
      current = (current ?? "") + "\\".repeat(backslashes.length >> 1)
      at += backslashes.length
      if (backslashes.length % 2 === 1) current += "\""
      else isQuoted = !isQuoted
    } else if (backslashes.length > 0) {
      current = (current ?? "") + backslashes
      at += backslashes.length - 1
    } else if (text[at] === "\"") {
      isQuoted = !isQuoted
      current ??= ""
    } else if (text[at] === " " && !isQuoted) {
      if (current !== undefined) args.push(current)
      current = undefined
    } else current = (current ?? "") + text[at]
  }
  return current === undefined ? args : [...args, current]
}

describe("a command on Windows", () => {
  it("is found by PATH and PATHEXT, in the order of PATHEXT", () => {
    assert.strictEqual(program("node"), "C:\\NODEJS\\NODE.EXE")
    assert.strictEqual(program("node.exe"), "C:\\NODEJS\\NODE.EXE")
    assert.strictEqual(program("uvx"), "C:\\TOOLS\\UVX.EXE")
    assert.strictEqual(program("a.b"), "C:\\TOOLS\\A.B.EXE")
    assert.strictEqual(program("node", [], { pathext: ".CMD" }), "NODE")
    assert.deepStrictEqual(resolved("node", ["a b"]), {
      file: "C:\\nodejs\\node.EXE",
      args: ["a b"],
      isVerbatim: false
    })
  })

  it("is started by cmd.exe if it is a script, also beside a file without an extension", () => {
    for (const command of ["npx", "npx.cmd", "NPX", "C:/nodejs/npx", "tool", "bin/serve", "bin\\serve.cmd"]) {
      assert.strictEqual(program(command), "C:\\WINDOWS\\CMD.EXE", command)
    }
    assert.strictEqual(program("npx", [], { ComSpec: "" }), "CMD.EXE")
    assert.strictEqual(line(["-y", "a-server"]), "\"C:\\nodejs\\npx.CMD ^\"-y^\" ^\"a-server^\"\"")
    const { args } = resolved("tool") as WindowsCommand
    assert.strictEqual(args[3], "\"C:\\Program^ Files\\tool\\tool.BAT\"")
  })

  it("is not searched in the working directory, and is returned as it is if it is not found", () => {
    assert.deepStrictEqual(resolved("evil"), { file: "evil", args: [], isVerbatim: false })
    assert.deepStrictEqual(resolved("absent", ["a"]), { file: "absent", args: ["a"], isVerbatim: false })
    assert.deepStrictEqual(
      windowsCommand("npx", [], { env: {}, cwd: "C:\\", isFile: () => false, firstLine: () => "" }),
      {
        file: "npx",
        args: [],
        isVerbatim: false
      }
    )
  })

  it("is run by the interpreter that the first line of its file names, if that is a program", () => {
    assert.deepStrictEqual(resolved(".\\server.mjs", ["a&b"]), {
      file: "C:\\nodejs\\node.EXE",
      args: ["--no-warnings", "C:\\work\\.\\server.mjs", "a&b"],
      isVerbatim: false
    })
    for (const name of ["server.py", "server.sh", "data.txt"]) {
      const file = `C:\\work\\${name}`
      assert.deepStrictEqual(resolved(file, ["a"]), { file, args: ["a"], isVerbatim: false })
    }
  })

  it("is found by the variable that Node passes on, if several differ in case only", () => {
    assert.strictEqual(program("node", [], { PATH: "C:\\tools" }), "NODE")
    assert.strictEqual(program("node", [], { path: "C:\\tools" }), "C:\\NODEJS\\NODE.EXE")
  })

  it("replaces variables of its environment in any case", () => {
    const host = { PATH: "a", SYSTEMROOT: "b", SECRET: "c" }
    assert.deepStrictEqual(environment({ ...host, Path: "a" }, { Path: "x", systemroot: undefined }, true, true), {
      SECRET: "c",
      Path: "x"
    })
    assert.deepStrictEqual(environment(host, { Path: "x" }, true, false), { ...host, Path: "x" })
  })

  it("passes every argument unchanged through a script, and none of them is a command", () => {
    const args = [
      "plain",
      "",
      "two words",
      "a&calc",
      "a|b>c<d",
      "\"&calc&\"",
      "{\"a\":\"b & c\"}",
      "\\\\server\\share\\",
      "back\\\"slash\\\\",
      "%PATH%",
      "^&^",
      "!x!",
      "(a)",
      "a;b,c=d",
      "*?"
    ]
    for (const arg of args) {
      const text = line([arg, "last"])
      const first = cmd(text.slice(1, -1))
      assert.isFalse(first.acts, arg)
      // The script passes its arguments on.
      const second = cmd(first.text)
      assert.isFalse(second.acts, arg)
      const passed = arg.includes("\"") ? second.text : first.text
      assert.deepStrictEqual(argv(passed).slice(1), [arg, "last"], arg)
    }
  })

  it("leaves no variable that cmd.exe would expand", () => {
    assert.notMatch(line(["%PATH%", "%a b%"]), /%[^%^]+%/)
  })

  it("refuses an argument with a line break, which would end the command line", () => {
    for (const arg of ["a\nb", "a\r", "a\0"]) {
      const refused = resolved("npx", [arg])
      assert.isString(refused)
      assert.include(refused as string, "line break")
    }
    assert.isObject(resolved("node", ["a\nb"]))
  })
})
