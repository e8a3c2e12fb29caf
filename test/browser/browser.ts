/** Starts a browser for the tests of the console, and opens the console of a gateway in it. */

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { chromiumIsRequired, chromiumProgram, howToGetChromium } from '../kit/find-chromium.ts';
import { adminToken, type GatewayUnderTest } from '../kit/gateway.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';

/** Why the tests of the console are skipped, or false. */
export const skipWithoutChromium: string | false =
  chromiumProgram() || chromiumIsRequired() ? false : `there is no browser; get one: ${howToGetChromium}`;

export type AdminAddress = Pick<GatewayUnderTest, 'adminUrl'>;

/** Opens pages in one browser. Every script error and every message on the browser's console fails the test. */
export interface Pages {
  /** Opens the console without signing in. */
  open(t: TestContext, address: AdminAddress, options?: BrowserContextOptions): Promise<Page>;
  /** Opens the console, signs in, and waits until the first event is rendered. */
  signIn(
    t: TestContext,
    address: AdminAddress,
    options?: BrowserContextOptions,
    token?: string,
  ): Promise<Page>;
}

/** The callers of `usePages` whose tests have not ended. */
let users = 0;
let browser: Promise<Browser> | undefined;

/** Starts one browser for the tests of all callers in this process, at the first use. */
export function usePages(): Pages {
  users += 1;
  scopeOfAllTests().after(async () => {
    users -= 1;
    if (users > 0) return;
    const last = browser;
    browser = undefined;
    await (await last)?.close();
  });

  async function open(t: TestContext, { adminUrl }: AdminAddress, options: BrowserContextOptions = {}) {
    browser ??= launchChromium();
    const context = await (await browser).newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    const messages: string[] = [];
    page.on('pageerror', (error) => messages.push(String(error.stack)));
    page.on('console', (message) => {
      // The browser logs 4xx responses and lost connections by itself; tests cause both on purpose.
      if (!message.text().startsWith('Failed to load resource')) messages.push(message.text());
    });
    t.after(async () => {
      await context.close();
      assert.deepEqual(messages, []);
    });
    await page.goto(adminUrl);
    return page;
  }

  return {
    open,
    async signIn(t, address, options, token = adminToken) {
      const page = await open(t, address, options);
      await page.getByLabel('Operator token').fill(token);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Environments' }).waitFor();
      return page;
    },
  };
}

async function launchChromium(): Promise<Browser> {
  const executablePath = chromiumProgram();
  if (!executablePath) throw new Error(howToGetChromium);
  // A container has neither the namespaces of the sandbox nor much shared memory.
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}
