import { defineBatch } from '../kit/batch.ts';

defineBatch('test/browser/**/*.test.ts');
