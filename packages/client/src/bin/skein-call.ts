#!/usr/bin/env node
import { main } from "../internal/command/nodeMain.ts"

main(process.argv.slice(2))
