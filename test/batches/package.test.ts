import { defineBatch } from '../kit/batch.ts';

defineBatch('test/package/**/*.test.ts');
